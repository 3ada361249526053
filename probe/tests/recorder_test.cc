#include "leasehold/probe/recorder.h"

#include <gtest/gtest.h>

namespace leasehold::probe {
namespace {

using namespace std::chrono_literals;

class RecorderTest : public testing::Test {
 protected:
  static BootTime at(Nanos since) { return BootTime(100s + since); }
  void ran(Nanos since, Nanos asleep = 5s) { recorder_.ran({at(since), asleep}); }
  const Measurement& seen() const { return recorder_.measured(); }

  Recorder recorder_{{at(0ms), 5s}, 1ms};
};

TEST_F(RecorderTest, ServedInTimeIsNoDelay) {
  EXPECT_EQ(recorder_.due(), at(1ms));
  for (int i = 1; i <= 1000; ++i) ran(i * 1ms);
  EXPECT_EQ(seen().delays.count(), 1000u);
  EXPECT_EQ(seen().delays.max(), 0ns);
  EXPECT_EQ(seen().length, 1000ms);
  EXPECT_EQ(seen().tick, 1ms);
  EXPECT_EQ(recorder_.due(), at(1001ms));
}

TEST_F(RecorderTest, TooEarlyIsNoMoment) {
  ran(900us);
  EXPECT_EQ(seen().delays.count(), 0u);
  EXPECT_EQ(recorder_.due(), at(1ms));
  EXPECT_EQ(seen().length, 900us);
}

TEST_F(RecorderTest, APauseDelaysEveryMomentItSwallowed) {
  ran(1ms);
  ran(102ms);  // due at 2 ms: 100 ms late, and the moments at 3 to 102 ms were missed with it
  EXPECT_EQ(seen().delays.count(), 102u);
  EXPECT_EQ(seen().delays.max(), 100ms);
  const auto median = seen().delays.quantile(0.5);
  EXPECT_GE(median, 49ms);
  EXPECT_LE(median, 51ms);
  EXPECT_EQ(recorder_.due(), at(103ms));
}

TEST_F(RecorderTest, APauseCountsOnce) {
  ran(1ms);
  ran(102ms);
  ran(103ms);
  EXPECT_EQ(seen().pauses.count(), 3u);
  EXPECT_EQ(seen().pauses.quantile(0.6), 0ns);
  EXPECT_EQ(seen().pauses.max(), 100ms);
}

TEST_F(RecorderTest, KeepsItsRasterAfterADelay) {
  ran(1700us);
  EXPECT_EQ(seen().delays.max(), 700us);
  EXPECT_EQ(recorder_.due(), at(2ms));
}

TEST_F(RecorderTest, ASuspendIsAPauseAndIsToldApart) {
  ran(1ms);
  ran(3002ms, 8s);
  ran(3003ms, 8s);
  EXPECT_EQ(seen().suspends, 1u);
  EXPECT_EQ(seen().suspended, 3s);
  EXPECT_EQ(seen().delays.max(), 3s);
}

TEST_F(RecorderTest, NoiseBetweenTheClocksIsNoSuspend) {
  ran(1ms, 5s + 900us);
  ran(2ms, 5s - 900us);
  ran(50ms, 5s);
  EXPECT_EQ(seen().suspends, 0u);
  EXPECT_EQ(seen().suspended, 0ns);
}

}  // namespace
}  // namespace leasehold::probe
