#include "leasehold/probe/histogram.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace leasehold::probe {
namespace {

using namespace std::chrono_literals;

TEST(Histogram, EmptyOneHasOnlyZeros) {
  const Histogram empty;
  EXPECT_EQ(empty.count(), 0u);
  EXPECT_EQ(empty.max(), 0ns);
  EXPECT_EQ(empty.quantile(0.5), 0ns);
  EXPECT_TRUE(empty.buckets().empty());
}

TEST(Histogram, ShortLengthsAreExact) {
  Histogram histogram;
  for (int i = 1; i <= 100; ++i) histogram.add(Nanos(i));
  EXPECT_EQ(histogram.count(), 100u);
  EXPECT_EQ(histogram.quantile(0), 1ns);
  EXPECT_EQ(histogram.quantile(0.01), 1ns);
  EXPECT_EQ(histogram.quantile(0.5), 50ns);
  EXPECT_EQ(histogram.quantile(0.99), 99ns);
  EXPECT_EQ(histogram.quantile(0.991), 100ns);
  EXPECT_EQ(histogram.quantile(1), 100ns);
}

TEST(Histogram, ANegativeLengthIsNone) {
  Histogram histogram;
  histogram.add(-5ns);
  EXPECT_EQ(histogram.count(), 1u);
  EXPECT_EQ(histogram.quantile(1), 0ns);
}

TEST(Histogram, QuantilesOfKnownInputAreNeverTooSmallAndHardlyTooLarge) {
  std::mt19937_64 random(7);
  std::lognormal_distribution<double> lengths(11, 3);
  Histogram histogram;
  std::vector<Nanos> all;
  for (int i = 0; i < 100000; ++i) {
    all.emplace_back(static_cast<Nanos::rep>(lengths(random)));
    histogram.add(all.back());
  }
  std::sort(all.begin(), all.end());
  for (const double q : {0.001, 0.25, 0.5, 0.9, 0.99, 0.999, 0.9999, 1.0}) {
    const auto rank = static_cast<std::size_t>(std::ceil(q * static_cast<double>(all.size())));
    const Nanos exact = all[std::max<std::size_t>(rank, 1) - 1];
    const auto most = static_cast<double>(exact.count()) * (1 + Histogram::kRelativeError);
    EXPECT_GE(histogram.quantile(q), exact) << q;
    EXPECT_LE(static_cast<double>(histogram.quantile(q).count()), most) << q;
  }
  EXPECT_EQ(histogram.max(), all.back());
}

TEST(Histogram, BucketsCoverEveryLengthWithoutGapOrOverlap) {
  Histogram histogram;
  for (int bit = 0; bit < 63; ++bit) {
    const Nanos power(Nanos::rep{1} << bit);
    for (const Nanos length : {power - 1ns, power, power + power / 3}) histogram.add(length);
  }
  histogram.add(Nanos::max());
  Nanos end = -1ns;
  std::uint64_t counted = 0;
  for (const Histogram::Bucket& bucket : histogram.buckets()) {
    EXPECT_GT(bucket.lowest, end);
    EXPECT_GE(bucket.highest, bucket.lowest);
    EXPECT_LE(bucket.highest - bucket.lowest, bucket.lowest / 128);
    end = bucket.highest;
    counted += bucket.count;
  }
  EXPECT_EQ(counted, histogram.count());
  EXPECT_EQ(end, Nanos::max());
}

TEST(Histogram, FallingLengthsAreAddedAsIfOneByOne) {
  for (const Nanos first : {0ns, 999ns, 5'000'000ns, 123'456'789ns}) {
    for (const Nanos step : {1ns, 7ns, 100'000ns, 1'000'000ns}) {
      const auto times =
          std::min<std::uint64_t>(static_cast<std::uint64_t>(first / step) + 1, 200'000);
      Histogram at_once;
      at_once.add_falling(first, step, times);
      Histogram one_by_one;
      for (std::uint64_t i = 0; i < times; ++i) {
        one_by_one.add(first - step * static_cast<Nanos::rep>(i));
      }
      EXPECT_EQ(at_once.count(), one_by_one.count());
      EXPECT_EQ(at_once.max(), one_by_one.max());
      const auto buckets = at_once.buckets();
      const auto expected = one_by_one.buckets();
      ASSERT_EQ(buckets.size(), expected.size()) << first.count() << " by " << step.count();
      for (std::size_t i = 0; i < buckets.size(); ++i) {
        EXPECT_EQ(buckets[i].lowest, expected[i].lowest);
        EXPECT_EQ(buckets[i].count, expected[i].count);
      }
    }
  }
}

TEST(Histogram, AYearOfMissedTicksIsAddedAtOnce) {
  Histogram histogram;
  const auto ticks = static_cast<std::uint64_t>(Nanos(8760h) / 1ms);
  histogram.add_falling(8760h, 1ms, ticks);
  EXPECT_EQ(histogram.count(), ticks);
  const auto half = static_cast<double>(Nanos(4380h).count());
  EXPECT_NEAR(static_cast<double>(histogram.quantile(0.5).count()), half, half / 128);
}

}  // namespace
}  // namespace leasehold::probe
