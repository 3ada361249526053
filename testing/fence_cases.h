// Every branch of the fence's rule, as cases that can be played at a real fence: what was done
// before, and who enters then. fence::judge() says what the result must be.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fence/rule.h"

namespace leasehold::testing {

// How a fence understands sequence numbers.
struct FenceWays {
  bool numbers = false;         // it orders a holder's writes by them
  bool names = false;           // it remembers the name of a write, and knows it again by that
  bool compares = false;        // it knows a write that comes again by what is there
  bool numbers_itself = false;  // it gives a number to a write that has none
  bool knows_writes = true;     // it can tell a write without a number from a read
  bool readers = false;         // it lets those who only read in beside each other
};

struct FenceStep {
  Token token;
  Access access = Access::write;
  bool writes = true;
  bool single = false;
  std::int64_t sequence = 0;
  std::string content = "V";

  fence::Attempt attempt(const fence::Mark& mark, const FenceWays& ways) const;
};

struct FenceRuleCase {
  std::optional<TokenNumber> adopted;  // of the lineage of the first store
  std::vector<FenceStep> before;
  FenceStep then;

  fence::Mark mark(const FenceWays& ways) const;
  std::string str() const;
};

// Those that a fence with these ways can play.
std::vector<FenceRuleCase> fence_rule_cases(const FenceWays& ways);

}  // namespace leasehold::testing
