// For what must end at one time and, if that is broken, ends at another one by itself.
#pragma once

#include "leasehold/time.h"

namespace leasehold::testing {

// Whether one of ten tries takes less than `limit`. A machine that stalls makes some of them late;
// a limit that nobody looks at makes all of them late.
template <class Try>
bool one_ends_within(Millis limit, Try attempt) {
  for (int i = 0; i < 10; ++i) {
    const BootTime began = BootClock::now();
    attempt();
    if (BootClock::now() - began < limit) return true;
  }
  return false;
}

}  // namespace leasehold::testing
