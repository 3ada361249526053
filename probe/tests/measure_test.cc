// The real clock: only what must hold however slow the machine is.
#include "leasehold/probe/measure.h"

#include <gtest/gtest.h>

#include "leasehold/probe/load.h"

namespace leasehold::probe {
namespace {

using namespace std::chrono_literals;

void expect_sound(const Measurement& measured, Nanos at_least) {
  EXPECT_GE(measured.length, at_least);
  EXPECT_EQ(measured.delays.count(), static_cast<std::uint64_t>(measured.length / measured.tick));
  EXPECT_GE(measured.delays.count(), measured.pauses.count());
  EXPECT_GE(measured.pauses.count(), 1u);
  EXPECT_EQ(measured.delays.max(), measured.pauses.max());
  EXPECT_LE(measured.delays.max(), measured.length);
}

TEST(Measure, EveryTickOfTheDurationIsCounted) {
  Progress progress;
  const Measurement measured = measure({.duration = 50ms}, {}, progress);
  expect_sound(measured, 50ms);
  EXPECT_EQ(progress.measured, measured.length.count());
  EXPECT_EQ(progress.worst, measured.delays.max().count());
}

TEST(Measure, SpinningToo) {
  Progress progress;
  expect_sound(measure({.duration = 50ms, .waiting = Waiting::spin}, {}, progress), 50ms);
}

TEST(Measure, UnderLoadToo) {
  const Load load(4);
  Progress progress;
  expect_sound(measure({.duration = 50ms}, {}, progress), 50ms);
}

TEST(Measure, EndsWhenItIsStopped) {
  std::stop_source stop;
  Progress progress;
  Measurement measured;
  std::jthread thread([&] { measured = measure({.duration = 24h}, stop.get_token(), progress); });
  while (progress.measured == 0) std::this_thread::yield();
  stop.request_stop();
  thread.join();
  EXPECT_LT(measured.length, 24h);
}

}  // namespace
}  // namespace leasehold::probe
