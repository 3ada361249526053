#include "leasehold/reentrant_lock.h"

#include <optional>
#include <string>
#include <utility>

#include "kit/text/visible_text.h"
#include "kit/threads/thread_safety.h"
#include "kit/try.h"
#include "take.h"

namespace leasehold {
namespace detail {

// The lease and its count. Who is on its way to the store has not the mutex: others wait for it by
// the time that they have.
template <class HeldLease>
class Reentry {
 public:
  using Hold = HoldOf<HeldLease>;

  Reentry(Client client, LockName lock) : client_(std::move(client)), lock_(std::move(lock)) {}

  Result<Hold> acquire(const std::shared_ptr<Reentry>& self, const AcquireOptions& options)
      LEASEHOLD_EXCLUDES(mutex_) {
    {
      MutexLock locked(mutex_);
      if (holds_ > 0 && !under_way_) return again(self, options);
    }
    return first(self, options);
  }

  Result<ReleaseOutcome> release(Millis timeout, const std::stop_token& stop)
      LEASEHOLD_EXCLUDES(mutex_) {
    {
      MutexLock locked(mutex_);
      if (holds_ > 1) {
        --holds_;
        return lease_->state() == LeaseState::lost ? ReleaseOutcome::too_late
                                                   : ReleaseOutcome::released;
      }
      under_way_ = true;
    }
    const Way way(*this);
    return take_out().value().release(timeout, stop);
  }

  void drop() noexcept LEASEHOLD_EXCLUDES(mutex_) {
    const std::optional<HeldLease> last = take_out();
  }

 private:
  // Ends what is under way, however it ended.
  class Way {
   public:
    explicit Way(Reentry& reentry) : reentry_(reentry) {}
    ~Way() { reentry_.arrive(); }
    Way(const Way&) = delete;

   private:
    Reentry& reentry_;
  };

  Result<Hold> first(const std::shared_ptr<Reentry>& self, const AcquireOptions& options)
      LEASEHOLD_EXCLUDES(mutex_) {
    const BootTime until = BootClock::now() + options.wait;
    {
      MutexLock locked(mutex_);
      TRY(wait_for_others(options));
      if (holds_ > 0) return again(self, options);
      under_way_ = true;
    }
    const Way way(*this);
    auto lease = TRY(take_until<HeldLease>(until, client_, lock_, options));
    MutexLock locked(mutex_);
    holds_ = 1;
    return Hold(self, lease_.emplace(std::move(lease)));
  }

  Result<Hold> again(const std::shared_ptr<Reentry>& self, const AcquireOptions& options)
      LEASEHOLD_REQUIRES(mutex_) {
    if (options.mode != lease_->mode()) {
      return fail(ErrorCode::invalid, words() + " is held as " + to_string(lease_->mode()) +
                                          " and cannot be taken as " + to_string(options.mode) +
                                          " besides: that would wait for itself");
    }
    if (lease_->state() == LeaseState::lost) {
      return fail(ErrorCode::lost, "the lease of " + words() +
                                       " has ended; the lock can be taken " + "anew when all " +
                                       std::to_string(holds_) +
                                       " who share the lease have given it back");
    }
    ++holds_;
    return Hold(self, *lease_);
  }

  Status wait_for_others(const AcquireOptions& options) LEASEHOLD_REQUIRES(mutex_) {
    const auto limit = within_reason(options.wait) + within_reason(options.store_timeout);
    if (changed_.wait_for(mutex_, options.stop, limit,
                          [this]() LEASEHOLD_REQUIRES(mutex_) { return !under_way_; })) {
      return {};
    }
    const std::string why =
        words() + " was being taken or given back by another thread all the time";
    if (options.stop.stop_requested()) return fail(ErrorCode::cancelled, why);
    return fail(options.wait > Millis(0) ? ErrorCode::timeout : ErrorCode::busy, why);
  }

  std::optional<HeldLease> take_out() LEASEHOLD_EXCLUDES(mutex_) {
    MutexLock locked(mutex_);
    if (--holds_ > 0) return std::nullopt;
    return std::exchange(lease_, std::nullopt);
  }
  void arrive() LEASEHOLD_EXCLUDES(mutex_) {
    MutexLock locked(mutex_);
    under_way_ = false;
    changed_.notify_all();
  }

  std::string words() const { return "lock " + kit::in_quotes(lock_.str()); }

  Client client_;
  const LockName lock_;
  Mutex mutex_;
  ConditionVariable changed_;
  std::optional<HeldLease> lease_ LEASEHOLD_GUARDED_BY(mutex_);
  std::size_t holds_ LEASEHOLD_GUARDED_BY(mutex_) = 0;
  bool under_way_ LEASEHOLD_GUARDED_BY(mutex_) = false;
};

}  // namespace detail

template <class HeldLease>
HoldOf<HeldLease>::HoldOf(std::shared_ptr<detail::Reentry<HeldLease>> reentry,
                          const HeldLease& lease) noexcept
    : reentry_(std::move(reentry)), lease_(&lease) {}

template <class HeldLease>
HoldOf<HeldLease>::HoldOf(HoldOf&&) noexcept = default;

template <class HeldLease>
HoldOf<HeldLease>& HoldOf<HeldLease>::operator=(HoldOf&& other) noexcept {
  if (this == &other) return *this;
  abandon();
  reentry_ = std::move(other.reentry_);
  lease_ = other.lease_;
  return *this;
}

template <class HeldLease>
HoldOf<HeldLease>::~HoldOf() {
  abandon();
}

template <class HeldLease>
void HoldOf<HeldLease>::abandon() noexcept {
  if (const auto given_back = std::move(reentry_)) given_back->drop();
}

template <class HeldLease>
Result<ReleaseOutcome> HoldOf<HeldLease>::release(Millis timeout, std::stop_token stop) {
  const auto given_back = std::move(reentry_);
  if (!given_back) return ReleaseOutcome::too_late;
  return given_back->release(timeout, stop);
}

template <class HeldLease>
ReentrantLockOf<HeldLease>::ReentrantLockOf(Client client, LockName lock)
    : reentry_(std::make_shared<detail::Reentry<HeldLease>>(std::move(client), std::move(lock))) {}
template <class HeldLease>
ReentrantLockOf<HeldLease>::~ReentrantLockOf() = default;

template <class HeldLease>
Result<HoldOf<HeldLease>> ReentrantLockOf<HeldLease>::acquire(const AcquireOptions& options) {
  return reentry_->acquire(reentry_, options);
}

template class HoldOf<Lease>;
template class HoldOf<FencedLease>;
template class ReentrantLockOf<Lease>;
template class ReentrantLockOf<FencedLease>;

}  // namespace leasehold
