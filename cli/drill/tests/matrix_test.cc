#include "cli/drill/matrix.h"

#include <gtest/gtest.h>

namespace leasehold::cli {
namespace {

drill::Drilled drilled(std::uint64_t accepted) {
  drill::Drilled one;
  one.outcome.faults = {{"pause", 1}};
  one.outcome.cycles = 1 + accepted;
  one.outcome.stale_refused = 1;
  one.outcome.stale_accepted = accepted;
  one.outcome.writes = 1;
  return one;
}

// Drills by the names of their stores.
Result<drill::Drilled> run(const drill::Plan& plan) {
  if (plan.store == "away") return fail(ErrorCode::unavailable, "it does not answer");
  return drilled(plan.store == "damaged" ? 1 : 0);
}

int number_of(const std::vector<std::string>& stores) {
  std::vector<drill::Plan> plans;
  for (const std::string& store : stores) plans.emplace_back().store = store;
  return static_cast<int>(tell_drills(plans, run, false));
}

TEST(DrillMatrixTest, DamageIsNotHiddenByADrillThatCouldNotBeHeld) {
  EXPECT_EQ(number_of({"good"}), 0);
  EXPECT_EQ(number_of({"good", "away"}), 69);
  EXPECT_EQ(number_of({"damaged", "away", "good"}), 1);
  EXPECT_EQ(number_of({"away", "damaged"}), 1);
}

}  // namespace
}  // namespace leasehold::cli
