// How a thread sleeps until another wakes it, where there may be tens of thousands that sleep.
#pragma once

#include <atomic>
#include <cstdint>

#include "leasehold/time.h"

namespace leasehold::kit {

// For one sleeper, once. Thread safe.
class Doorbell {
 public:
  // What was written before is seen by who wakes. That one may destroy this object at once.
  void ring();

  // Until it is rung, or was rung before; false if that was not by `when`.
  bool wait_until(BootTime when);
  void wait() { wait_until(BootTime::max()); }

 private:
  enum State : std::uint32_t { kSilent, kSomebodySleeps, kRung };
  std::atomic<std::uint32_t> state_ = kSilent;
};

// For many sleepers, again and again: one call into the kernel wakes them all, so that who strikes
// it is not pushed aside by each of them. Who wakes looks whether it was meant. Thread safe.
class Gong {
 public:
  using Strokes = std::uint32_t;

  // What was written before is seen by who wakes.
  void strike();

  Strokes strokes() const { return strokes_; }
  // Until it has been struck more often than that, or `when`; or for no reason.
  void await_stroke_after(Strokes seen, BootTime when);

 private:
  std::atomic<Strokes> strokes_ = 0;
};

}  // namespace leasehold::kit
