// What a reader of a long timeline should look at first.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "leasehold/drill/history.h"
#include "leasehold/drill/outcome.h"
#include "timeline.h"

namespace leasehold::drill {

struct Moment {
  std::int64_t from;  // what to look at, to see how it came
  std::int64_t to;
  std::int64_t time;
  std::string what;
  std::string where;  // who, at which lock
  std::string details;
  bool bad = false;
};

// The gravest first: what the checker found, stale writes that were accepted, then refused ones,
// then kills; a few of each, by time.
std::vector<Moment> moments_of(const Outcome& outcome, const History& history,
                               const Timeline& timeline);

}  // namespace leasehold::drill
