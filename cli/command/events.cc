#include "cli/command/events.h"

#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace leasehold::cli {
namespace {

process::Fd checked(int raw, const char* what) {
  if (raw < 0) throw std::system_error(errno, std::generic_category(), what);
  return process::Fd(raw);
}

}  // namespace

BootTimer::BootTimer()
    : fd_(checked(timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK), "timerfd")) {}

void BootTimer::set(BootTime moment) {
  // Zero would disarm it.
  const auto nanos = std::max<BootClock::rep>(moment.time_since_epoch().count(), 1);
  itimerspec spec{};
  spec.it_value = {static_cast<time_t>(nanos / 1'000'000'000),
                   static_cast<long>(nanos % 1'000'000'000)};
  timerfd_settime(fd_.get(), TFD_TIMER_ABSTIME, &spec, nullptr);
}

void BootTimer::clear() {
  const itimerspec never{};
  timerfd_settime(fd_.get(), 0, &never, nullptr);
}

Flag::Flag() : fd_(checked(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd")) {}

void Flag::raise() const {
  eventfd_write(fd_.get(), 1);
}

void Flag::clear() {
  eventfd_t count = 0;
  eventfd_read(fd_.get(), &count);
}

}  // namespace leasehold::cli
