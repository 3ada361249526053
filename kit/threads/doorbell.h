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

}  // namespace leasehold::kit
