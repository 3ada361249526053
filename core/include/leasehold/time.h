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
inline constexpr std::chrono::years kForEver{10};
template <class Rep, class Period>
constexpr std::chrono::duration<Rep, Period> within_reason(
    std::chrono::duration<Rep, Period> span) {
  using Span = std::chrono::duration<Rep, Period>;
  using Wide = std::chrono::duration<double>;
  if (Wide(span) > Wide(kForEver)) return std::chrono::duration_cast<Span>(kForEver);
  if (Wide(span) < -Wide(kForEver)) return std::chrono::duration_cast<Span>(-kForEver);
  return span;
}

}  // namespace detail

// The one way to make a deadline: it saturates, so that a span of any length is one. Found before
// std::chrono's own, which overflows.
template <class Rep, class Period>
constexpr BootTime operator+(BootTime from, std::chrono::duration<Rep, Period> span) {
  constexpr BootClock::duration last = BootClock::duration::max() - detail::kForEver;
  return BootTime(std::min(from.time_since_epoch(), last) + detail::within_reason(span));
}

// The clock an engine reads; a test gives its own. Thread safe, does not block.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual BootTime now() const = 0;
};

// The machine's boot clock. Lives as long as the program.
const Clock& system_clock();

}  // namespace leasehold
