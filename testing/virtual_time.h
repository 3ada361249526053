// Time and random numbers that a test controls.
#pragma once

#include <atomic>
#include <random>

#include "leasehold/random.h"
#include "leasehold/time.h"

namespace leasehold::testing {

// Stands still until told to move. Thread safe.
class FakeClock final : public Clock {
 public:
  explicit FakeClock(BootTime start = BootTime(std::chrono::hours(1)))
      : ticks_(start.time_since_epoch().count()) {}

  BootTime now() const override { return BootTime(BootClock::duration(ticks_.load())); }
  void advance(BootClock::duration by) { ticks_ += by.count(); }
  void set(BootTime when) { ticks_ = when.time_since_epoch().count(); }

 private:
  std::atomic<BootClock::rep> ticks_;
};

// The same seed gives the same numbers. Not thread safe.
class SeededRandom final : public Random {
 public:
  explicit SeededRandom(std::uint64_t seed) : engine_(seed) {}
  std::uint64_t next() override { return engine_(); }

 private:
  std::mt19937_64 engine_;
};

}  // namespace leasehold::testing
