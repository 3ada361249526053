#include "leasehold/run_while_held.h"

#include <algorithm>
#include <functional>
#include <string>
#include <system_error>
#include <thread>

#include "kit/threads/thread_safety.h"
#include "kit/try.h"

namespace leasehold::detail {
namespace {

constexpr int kDefaultMargin = 6;  // of the TTL, this part
constexpr int kLongestMargin = 3;  // a healthy lease is renewed before
// The clock that a thread sleeps by stands still while the machine is suspended.
constexpr BootClock::duration kLook = std::chrono::seconds(1);

// Of the TTL that the store gave, which may be less than was asked.
Millis margin_of(const Lease& lease, const RunOptions& options) {
  return std::min(options.margin.value_or(lease.ttl() / kDefaultMargin),
                  lease.ttl() / kLongestMargin);
}

}  // namespace

// Whoever has something to tell wakes its thread: so what hangs on the work's token delays nobody.
class HeldRun::Watch {
 public:
  Watch(const Lease& lease, Millis margin, std::stop_token caller)
      : lease_(lease), margin_(margin), lost_(lease.lost()), caller_(std::move(caller)) {}

  std::stop_token stop() const { return stop_.get_token(); }

 private:
  void watch(const std::stop_token& over) LEASEHOLD_EXCLUDES(mutex_) {
    while (!over.stop_requested()) {
      const auto left = lease_.remaining() - margin_;
      if (told() || left <= BootClock::duration()) {
        stop_.request_stop();
        return;
      }
      MutexLock lock(mutex_);
      changed_.wait_for(mutex_, over, std::min(left, kLook), [this] { return told(); });
    }
  }
  bool told() const { return lost_.stop_requested() || caller_.stop_requested(); }
  void wake() LEASEHOLD_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    changed_.notify_all();
  }

  const Lease& lease_;
  const Millis margin_;
  const std::stop_token lost_;
  const std::stop_token caller_;
  std::stop_source stop_;
  Mutex mutex_;
  ConditionVariable changed_;
  std::stop_callback<std::function<void()>> on_loss_{lost_, [this] { wake(); }};
  std::stop_callback<std::function<void()>> on_caller_{caller_, [this] { wake(); }};
  std::jthread thread_{[this](const std::stop_token& over) { watch(over); }};
};

Status check(const RunOptions& options) {
  if (!options.margin) return {};
  const Millis longest = options.acquire.ttl / kLongestMargin;
  if (*options.margin >= Millis(0) && *options.margin <= longest) return {};
  return fail(ErrorCode::invalid, "the margin must be 0 to " + std::to_string(longest.count()) +
                                      " ms, a third of the TTL, not " +
                                      std::to_string(options.margin->count()) + " ms");
}

HeldRun::HeldRun(Lease& lease, const RunOptions& options) : lease_(lease), options_(options) {}

HeldRun::~HeldRun() {
  end();
}

Status HeldRun::begin() {
  const Millis margin = margin_of(lease_, options_);
  TRY(lease_.require(margin));
  try {
    watch_ = std::make_unique<Watch>(lease_, margin, options_.acquire.stop);
  } catch (const std::system_error& error) {
    return fail(ErrorCode::unavailable, "this process cannot start a thread", error.what());
  }
  return {};
}

std::stop_token HeldRun::stop() const {
  return watch_->stop();
}

RunEnd HeldRun::end() {
  RunEnd ending;
  const bool in_time = lease_.state() != LeaseState::lost;
  if (watch_) ending.told_to_stop = watch_->stop().stop_requested();
  watch_.reset();
  auto released = lease_.release(options_.acquire.store_timeout);
  ending.held = in_time && (!released || *released == ReleaseOutcome::released);
  if (!released) ending.not_released = std::move(released.error());
  return ending;
}

}  // namespace leasehold::detail
