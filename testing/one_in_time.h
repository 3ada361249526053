// For a call that must end at one time, and ends at a later one by itself if that is broken.
#pragma once

#include "leasehold/time.h"

namespace leasehold::testing {

// Whether one of ten tries takes less than `timeout`. A machine that stalls makes some of them
// late; a timeout that is ignored makes all of them late.
template <class Try>
bool one_ends_in_time(Millis timeout, Try attempt) {
  for (int i = 0; i < 10; ++i) {
    const BootTime began = BootClock::now();
    attempt();
    if (BootClock::now() - began < timeout) return true;
  }
  return false;
}

}  // namespace leasehold::testing
