#include "leasehold/several_locks.h"

#include <algorithm>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <utility>

#include "kit/text/visible_text.h"
#include "kit/try.h"
#include "take.h"

namespace leasehold {
namespace {

Result<std::vector<LockName>> parse_all(std::initializer_list<std::string_view> texts) {
  std::vector<LockName> locks;
  for (const std::string_view text : texts) locks.push_back(TRY(LockName::parse(text)));
  return locks;
}

Status sort_in_one_order(std::vector<LockName>& locks) {
  if (locks.empty()) return fail(ErrorCode::invalid, "no lock was named");
  std::sort(locks.begin(), locks.end());
  const auto twice = std::adjacent_find(locks.begin(), locks.end());
  if (twice == locks.end()) return {};
  return fail(ErrorCode::invalid, "lock " + kit::in_quotes(twice->str()) + " is named twice");
}

Error because_of(const LockName& lock, Error error) {
  error.message =
      "nothing was taken, because of " + kit::in_quotes(lock.str()) + ": " + error.message;
  return error;
}

}  // namespace

template <class HeldLease>
class LeasesOf<HeldLease>::Losses {
 public:
  explicit Losses(const std::vector<HeldLease>& leases) {
    for (const HeldLease& lease : leases) told_.emplace_back(lease.lost(), Tell{first_});
  }
  std::stop_token first() const { return first_.get_token(); }

 private:
  struct Tell {
    std::stop_source first;
    void operator()() const {
      std::stop_source kept = first;  // a callback may destroy the leases, and this with them
      kept.request_stop();
    }
  };
  std::stop_source first_;
  std::list<std::stop_callback<Tell>> told_;
};

template <class HeldLease>
LeasesOf<HeldLease>::LeasesOf(std::vector<HeldLease> leases)
    : leases_(std::move(leases)), losses_(std::make_unique<Losses>(leases_)) {}
template <class HeldLease>
LeasesOf<HeldLease>::LeasesOf(LeasesOf&&) noexcept = default;
template <class HeldLease>
LeasesOf<HeldLease>& LeasesOf<HeldLease>::operator=(LeasesOf&&) noexcept = default;
template <class HeldLease>
LeasesOf<HeldLease>::~LeasesOf() = default;

template <class HeldLease>
const HeldLease* LeasesOf<HeldLease>::find(const LockName& lock) const {
  const auto found = std::find_if(leases_.begin(), leases_.end(),
                                  [&](const HeldLease& it) { return it.lock() == lock; });
  return found == leases_.end() ? nullptr : &*found;
}

template <class HeldLease>
Status LeasesOf<HeldLease>::require_left(BootClock::duration margin) const {
  for (const HeldLease& lease : leases_) TRY(lease.require(margin));
  return {};
}

template <class HeldLease>
std::stop_token LeasesOf<HeldLease>::lost() const {
  return losses_->first();
}

template <class HeldLease>
Result<ReleaseOutcome> LeasesOf<HeldLease>::release(Millis timeout, std::stop_token stop) {
  const BootTime until = BootClock::now() + timeout;
  bool too_late = false;
  std::optional<Error> failure;
  for (auto lease = leases_.rbegin(); lease != leases_.rend(); ++lease) {
    const auto left = std::chrono::ceil<Millis>(until - BootClock::now());
    auto released = lease->release(std::max(Millis(1), left), stop);
    if (released && *released == ReleaseOutcome::too_late) too_late = true;
    if (!released && !failure) failure = std::move(released.error());
  }
  if (too_late) return ReleaseOutcome::too_late;
  if (failure) return fail(std::move(*failure));
  return ReleaseOutcome::released;
}

template <class HeldLease>
Result<LeasesOf<HeldLease>> acquire_each(Client& client, std::vector<LockName> locks,
                                         const AcquireOptions& options) {
  TRY(sort_in_one_order(locks));
  const BootTime until = BootClock::now() + options.wait;
  std::vector<HeldLease> taken;
  const auto give_back = [&](const LockName& lock, Error error) {
    (void)LeasesOf<HeldLease>(std::move(taken)).release(options.store_timeout, options.stop);
    return fail(because_of(lock, std::move(error)));
  };
  for (const LockName& lock : locks) {
    auto lease = detail::take_until<HeldLease>(until, client, lock, options);
    if (!lease) return give_back(lock, std::move(lease.error()));
    taken.push_back(std::move(*lease));
  }
  for (const HeldLease& lease : taken) {
    if (auto ok = lease.require(); !ok) {
      const LockName lock = lease.lock();
      return give_back(lock, std::move(ok.error()));
    }
  }
  return LeasesOf<HeldLease>(std::move(taken));
}

template class LeasesOf<Lease>;
template class LeasesOf<FencedLease>;

Result<Leases> acquire_all(Client& client, std::vector<LockName> locks, AcquireOptions options) {
  return acquire_each<Lease>(client, std::move(locks), options);
}
Result<Leases> acquire_all(Client& client, std::initializer_list<std::string_view> locks,
                           AcquireOptions options) {
  return acquire_each<Lease>(client, TRY(parse_all(locks)), options);
}
Result<FencedLeases> acquire_all_fenced(Client& client, std::vector<LockName> locks,
                                        AcquireOptions options) {
  return acquire_each<FencedLease>(client, std::move(locks), options);
}
Result<FencedLeases> acquire_all_fenced(Client& client,
                                        std::initializer_list<std::string_view> locks,
                                        AcquireOptions options) {
  return acquire_each<FencedLease>(client, TRY(parse_all(locks)), options);
}

}  // namespace leasehold
