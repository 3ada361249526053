// Time as leases count it: since the machine was booted, going on while it is suspended.
#pragma once

#include <algorithm>
#include <chrono>

namespace leasehold {

using Millis = std::chrono::milliseconds;

// CLOCK_BOOTTIME. std::chrono::steady_clock stops during suspend, so a lease measured by it would
// outlive its end; the wall clock can be moved.
struct BootClock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<BootClock>;
  static constexpr bool is_steady = true;

  static time_point now();
};

using BootTime = BootClock::time_point;

namespace detail {

// "For ever" in milliseconds would overflow the clock's nanoseconds.
constexpr Millis within_reason(Millis span) {
  return std::min<Millis>(span, std::chrono::years(10));
}

}  // namespace detail

// The clock an engine reads; a test gives its own. Thread safe, does not block.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual BootTime now() const = 0;
};

// The machine's boot clock. Lives as long as the program.
const Clock& system_clock();

}  // namespace leasehold
