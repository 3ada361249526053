#include "waiting/backoff.h"

#include <algorithm>
#include <chrono>

namespace leasehold::waiting {
namespace {

constexpr Millis kLongest{50};

}  // namespace

Backoff::Backoff(Millis wait, std::stop_token stop)
    : wait_(wait), stop_(std::move(stop)), deadline_(BootClock::now() + wait) {}

Millis Backoff::left() const {
  return std::max(Millis(0), std::chrono::ceil<Millis>(deadline_ - BootClock::now()));
}

bool Backoff::pause() {
  const Millis remaining = left();
  if (remaining == Millis(0)) return false;
  step_ = std::min(step_ * 2, kLongest);
  std::uniform_int_distribution<Millis::rep> jitter(step_.count() / 2, step_.count());
  const Millis pause = std::min(remaining, Millis(jitter(random_)));
  MutexLock lock(mutex_);
  stopped_.wait_for(mutex_, stop_, pause, [] { return false; });
  return !stop_.stop_requested();
}

Error Backoff::give_up(const std::string& reason) const {
  if (stop_.stop_requested()) {
    return Error(ErrorCode::cancelled, "the wait was cancelled: " + reason);
  }
  if (wait_ <= Millis(0)) return Error(ErrorCode::busy, reason);
  return Error(ErrorCode::timeout, reason + "; waited " + std::to_string(wait_.count()) + " ms");
}

}  // namespace leasehold::waiting
