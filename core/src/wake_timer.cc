#include "wake_timer.h"

#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <system_error>

namespace leasehold::detail {

WakeTimer::WakeTimer(std::function<void()> on_time) : on_time_(std::move(on_time)) {
  timer_ = kit::Fd(timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC));
  if (!timer_) throw std::system_error(errno, std::generic_category(), "timerfd_create");
  thread_ = std::thread([this] { run(); });
}

void WakeTimer::arm(BootTime when) {
  MutexLock lock(mutex_);
  if (!stopping_) set(when);
}

void WakeTimer::stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    set(BootTime());
  }
  if (thread_.joinable()) thread_.join();
}

void WakeTimer::set(BootTime when) {
  // All zeros would disarm the timer.
  const auto since_boot =
      std::max<BootClock::duration>(when.time_since_epoch(), BootClock::duration(1));
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since_boot);
  itimerspec spec{};
  spec.it_value.tv_sec = seconds.count();
  spec.it_value.tv_nsec = (since_boot - seconds).count();
  timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &spec, nullptr);
}

bool WakeTimer::stopping() {
  MutexLock lock(mutex_);
  return stopping_;
}

void WakeTimer::run() {
  for (;;) {
    std::uint64_t expirations = 0;
    if (::read(timer_.get(), &expirations, sizeof expirations) < 0 && errno != EINTR) return;
    if (stopping()) return;
    on_time_();
  }
}

}  // namespace leasehold::detail
