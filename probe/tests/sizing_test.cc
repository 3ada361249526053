#include "leasehold/probe/sizing.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/timing.h"
#include "leasehold/ttl.h"

namespace leasehold::probe {
namespace {

using namespace std::chrono_literals;

// One day, so that numbers per day are those that were seen.
Measurement a_day() {
  Measurement day;
  day.length = 24h;
  day.tick = 1ms;
  return day;
}

// One operation is in flight at any moment.
constexpr Workload kAlways{30s, 100, 10ms};

TEST(Left, IsTwoThirdsToAllOfTheLeaseWithoutTheDriftAllowance) {
  const Left left = left_of(30s);
  EXPECT_EQ(left.most, 30s - 32ms);
  EXPECT_EQ(left.least, 20s - 32ms);
}

TEST(Left, DecidesHowLikelyAPauseOutlivesTheLease) {
  const Left left{20s, 30s};
  EXPECT_EQ(outlives(0s, left), 0);
  EXPECT_EQ(outlives(20s, left), 0);
  EXPECT_DOUBLE_EQ(outlives(22500ms, left), 0.25);
  EXPECT_EQ(outlives(30s, left), 1);
  EXPECT_EQ(outlives(1h, left), 1);
}

TEST(UpperBound, OfNoneSeenIsTheRuleOfThree) {
  EXPECT_NEAR(upper_bound(0), -std::log(0.05), 1e-6);
}

TEST(UpperBound, IsThatOfThePoissonTables) {
  // Half of the 95 % point of chi squared with 2n + 2 degrees of freedom.
  EXPECT_NEAR(upper_bound(1), 4.7439, 1e-3);
  EXPECT_NEAR(upper_bound(2), 6.2958, 1e-3);
  EXPECT_NEAR(upper_bound(10), 16.9622, 1e-3);
  EXPECT_NEAR(upper_bound(99), 116.997, 1e-3);
}

TEST(UpperBound, GoesOnSmoothlyWhereItIsApproximated) {
  EXPECT_NEAR(upper_bound(201) - upper_bound(200), 1.06, 0.1);
  EXPECT_NEAR(upper_bound(1'000'000), 1'001'647, 5);
}

TEST(Violations, NoneSeenIsNotZero) {
  Measurement day = a_day();
  day.pauses.add(19s, 5);  // shorter than whatever is left of 30 s
  const Violations none = violations(day, kAlways);
  EXPECT_EQ(none.pauses, 0u);
  EXPECT_EQ(none.per_day, 0);
  EXPECT_NEAR(none.per_day_most, 3.0, 0.01);
  EXPECT_NEAR(none.days_for_less_than_one, 3.0, 0.01);
}

TEST(Violations, AShortMeasurementSaysLittle) {
  Measurement ten_seconds = a_day();
  ten_seconds.length = 10s;
  EXPECT_NEAR(violations(ten_seconds, kAlways).per_day_most, 3.0 * 8640, 50);
}

TEST(Violations, APauseLongerThanTheWholeLeaseHitsWhatIsInFlight) {
  Measurement day = a_day();
  day.pauses.add(60s, 2);
  const Violations two = violations(day, kAlways);
  EXPECT_EQ(two.pauses, 2u);
  EXPECT_DOUBLE_EQ(two.per_day, 2);
  EXPECT_NEAR(two.per_day_most, 6.296, 0.01);
}

TEST(Violations, APauseBetweenHitsByChance) {
  Measurement day = a_day();
  day.pauses.add(25s - 32ms, 10);
  EXPECT_NEAR(violations(day, kAlways).per_day, 5, 0.1);
}

TEST(Violations, GrowWithTheOperationsInFlight) {
  Measurement day = a_day();
  day.pauses.add(60s, 2);
  EXPECT_DOUBLE_EQ(violations(day, {30s, 1000, 10ms}).per_day, 20);
  EXPECT_DOUBLE_EQ(violations(day, {30s, 1, 10ms}).per_day, 0.02);
  EXPECT_DOUBLE_EQ(violations(day, {30s, 100, 1ms}).per_day, 0.2);
  EXPECT_NEAR(violations(day, {30s, 1000, 10ms}).days_for_less_than_one, 30, 0.1);
}

TEST(Violations, ALongerTtlHasFewer) {
  Measurement day = a_day();
  day.pauses.add(25s, 10);
  EXPECT_GT(violations(day, {20s, 100, 10ms}).per_day, violations(day, kAlways).per_day);
  EXPECT_EQ(violations(day, {60s, 100, 10ms}).per_day, 0);
}

// What an engine does with this TTL if every renewal comes late and three fail.
Nanos renewed_after(Millis ttl, Nanos pause) {
  class : public Random {
    std::uint64_t next() override { return 10; }
  } longest;
  using namespace engine;
  return renewal_interval(ttl) + pause + renewal_retry(0, ttl, longest) + pause +
         renewal_retry(1, ttl, longest) + pause + renewal_retry(2, ttl, longest) + pause;
}

TEST(SurvivingTtl, IsTheShortestThatIsRenewedInTime) {
  for (const Nanos pause : {Nanos(20ms), Nanos(137ms), Nanos(1s), Nanos(40s)}) {
    const auto ttl = surviving_ttl(pause);
    ASSERT_TRUE(ttl);
    EXPECT_LE(renewed_after(*ttl, pause), *ttl - engine::drift_allowance(*ttl));
    const Millis less = *ttl - 1ms;
    EXPECT_GT(renewed_after(less, pause), less - engine::drift_allowance(less));
  }
}

TEST(SurvivingTtl, OfKnownPauses) {
  // 1 s: a third, three waits of 200, 400 and 800 ms, four pauses, a thousandth and 2 ms.
  EXPECT_EQ(surviving_ttl(1s), 8116ms);
  EXPECT_EQ(surviving_ttl(0ns), Ttl::kMin);
}

TEST(SurvivingTtl, IsNoneIfEvenADayIsTooShort) {
  EXPECT_FALSE(surviving_ttl(5h));
  EXPECT_TRUE(surviving_ttl(3h));
}

TEST(SurvivingTtl, GrowsWithTheMissedRenewals) {
  EXPECT_LT(*surviving_ttl(1s, 0), *surviving_ttl(1s, 1));
  EXPECT_LT(*surviving_ttl(1s, 1), *surviving_ttl(1s, 3));
}

}  // namespace
}  // namespace leasehold::probe
