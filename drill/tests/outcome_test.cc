#include "leasehold/drill/outcome.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace leasehold::drill {
namespace {

using ::testing::HasSubstr;

Outcome good() {
  Outcome outcome;
  outcome.fence = "sqlite";
  outcome.faults = {{"pause", 3}};
  outcome.cycles = 3;
  outcome.stale_refused = 3;
  outcome.writes = 7;
  return outcome;
}

TEST(OutcomeTest, HeldIfEverythingLateWasRefused) {
  EXPECT_EQ(judge(good()), Verdict::held);
  EXPECT_EQ(sentence(good()),
            "Nothing stale was accepted and no update was lost: 3 late writes were refused, 3 "
            "faults injected.");
}

TEST(OutcomeTest, EachKindOfDamageIsDamage) {
  Outcome accepted = good();
  accepted.stale_accepted = 1;
  EXPECT_EQ(judge(accepted), Verdict::damage);
  EXPECT_EQ(sentence(accepted), "Damage: 1 stale write was accepted.");
  Outcome lost = good();
  lost.updates_lost = 2;
  lost.fence = "none";
  EXPECT_EQ(judge(lost), Verdict::damage);
  EXPECT_EQ(sentence(lost), "Damage, as is to be expected without a fence: 2 updates were lost.");
  Outcome foreign = good();
  foreign.foreign_values = 1;
  EXPECT_EQ(judge(foreign), Verdict::damage);
  Outcome broken = good();
  broken.report.violations.push_back({Check::I2, "", {}});
  broken.report.counts[static_cast<std::size_t>(Check::I2)] = 4;
  EXPECT_EQ(judge(broken), Verdict::damage);
  EXPECT_EQ(sentence(broken),
            "Damage: I2 was broken 4 times (docs/proof.md says what these invariants are).");
}

TEST(OutcomeTest, WithoutFaultsCyclesOrWritesNothingIsSaid) {
  Outcome calm = good();
  calm.faults.clear();
  EXPECT_EQ(judge(calm), Verdict::too_little);
  Outcome missing = good();
  missing.faults.push_back({"cut", 0});
  EXPECT_EQ(judge(missing), Verdict::too_little);
  Outcome unfinished = good();
  unfinished.cycles = 0;
  EXPECT_EQ(judge(unfinished), Verdict::too_little);
  Outcome unrefused = good();
  unrefused.stale_refused = 0;
  unrefused.stale_unknown = 3;
  EXPECT_EQ(judge(unrefused), Verdict::too_little);
  EXPECT_THAT(sentence(unrefused), HasSubstr("3 full cycles, 0 late writes refused, 7 writes"));
  Outcome idle = good();
  idle.writes = 0;
  EXPECT_EQ(judge(idle), Verdict::too_little);
  EXPECT_THAT(sentence(idle), HasSubstr("Too little happened"));
}

TEST(OutcomeTest, ReadersMustHaveReadWhileAWriterWasFrozen) {
  Outcome shared = good();
  shared.readers = 2;
  EXPECT_EQ(judge(shared), Verdict::too_little);
  EXPECT_THAT(sentence(shared), HasSubstr("3 late writes refused, 0 reads meanwhile, 7 writes"));
  shared.reads_meanwhile = 1;
  EXPECT_EQ(judge(shared), Verdict::held);
}

}  // namespace
}  // namespace leasehold::drill
