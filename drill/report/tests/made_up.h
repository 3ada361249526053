// Drills that nobody ran, for tests of their reports.
#pragma once

#include <cstdint>
#include <string>

#include "leasehold/drill/history.h"
#include "leasehold/drill/outcome.h"

namespace leasehold::drill {

struct MadeUpPlan {
  unsigned seconds = 5;
  unsigned cycles_per_second = 20;  // over all locks
  unsigned quiet_per_cycle = 3;     // leases without a fault before each cycle
  unsigned locks = 2;
  unsigned workers = 3;          // per lock
  bool fenced = true;            // else late writes are accepted
  std::int64_t first_token = 1;  // of every lock
  std::string lock_prefix = "drill-";
};

struct MadeUp {
  History history;
  Outcome outcome;
};

// The checker has judged it. Every cycle is a full one.
MadeUp made_up(const MadeUpPlan& plan);

}  // namespace leasehold::drill
