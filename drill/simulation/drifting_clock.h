// Time in a simulated world: one true time, and what each machine's boot clock makes of it.
#pragma once

#include <cstdint>

#include "leasehold/time.h"

namespace leasehold::simulation {

// Nanoseconds of true time. The store's clock shows it exactly; the others drift against it.
using Time = std::int64_t;

inline constexpr Time kMillisecond = 1'000'000;
inline constexpr Time kSecond = 1'000 * kMillisecond;

inline Time in_time(Millis span) {
  return span.count() * kMillisecond;
}

// A boot clock that runs a little too fast or too slow, by a rate that may change but never makes
// it jump.
class DriftingClock {
 public:
  static constexpr int kMaxPpm = 900;  // the engine allows for 1000

  // What it shows; the engine's `now`.
  BootTime local(Time time) const { return BootTime(BootClock::duration(shown(time))); }

  // A true time at which it has just come to show `local`, at the present rate.
  Time when(BootTime local) const {
    const std::int64_t wanted = local.time_since_epoch().count();
    const std::int64_t ahead = wanted - shown_at_;
    Time time = since_ + ahead - ahead / 1'000'000 * ppm_;
    while (shown(time) < wanted) time += wanted - shown(time);
    return time;
  }

  void set_rate(Time time, int ppm) {
    shown_at_ = shown(time);
    since_ = time;
    ppm_ = ppm;
  }

 private:
  std::int64_t shown(Time time) const {
    const std::int64_t passed = time - since_;
    return shown_at_ + passed + passed / 1'000'000 * ppm_ + passed % 1'000'000 * ppm_ / 1'000'000;
  }

  Time since_ = 0;
  std::int64_t shown_at_ = kSecond * 3600;
  int ppm_ = 0;
};

}  // namespace leasehold::simulation
