#include "../ledger.h"

#include <gtest/gtest.h>

namespace leasehold::drill {
namespace {

TEST(CyclesTest, OnlyAnAnsweredLateWriteMakesACycleFull) {
  Cycles cycles;
  cycles.late_write("refused");
  cycles.late_write("wrote");
  cycles.late_write("unknown");
  EXPECT_EQ(cycles.full, 2u);
  EXPECT_EQ(cycles.refused, 1u);
  EXPECT_EQ(cycles.accepted, 1u);
  EXPECT_EQ(cycles.unknown, 1u);
  EXPECT_EQ(cycles.unfinished, 1u);
}

TEST(LedgerTest, RemembersTheFirstLateWrites) {
  Ledger ledger;
  for (std::int64_t token = 1; token <= 100; ++token) ledger.remember({.token = token});
  EXPECT_EQ(ledger.late_writes().size(), 5u);
  EXPECT_EQ(ledger.late_writes().front().token, 1);
}

}  // namespace
}  // namespace leasehold::drill
