#include "store_base/line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <latch>
#include <thread>

namespace leasehold {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using Ride = Line::Ride;

// A call with a number, by which a test knows it.
struct Numbered final : Rider {
  Numbered(int which, CallContext limits) : Rider(std::move(limits)), number(which) {}
  const int number;
};

// How long a test may take is not the matter here.
constexpr Millis kEndless = 1h;

class LineTest : public ::testing::Test {
 protected:
  using Numbers = std::vector<int>;

  explicit LineTest(Millis patience = kEndless) : patience_(patience) {}
  ~LineTest() override {
    for (auto& thread : threads_) thread.join();
    line.close();
  }

  static CallContext context(BootClock::duration time = 10s, std::stop_token stop = {},
                             bool urgent = false) {
    return {BootClock::now() + time, std::move(stop), urgent};
  }

  // In a thread of its own; returns when it has gathered.
  std::future<Ride> ride(int number, CallContext limits = context()) {
    const std::size_t before = line.gathered();
    auto rider = std::make_shared<Numbered>(number, std::move(limits));
    std::packaged_task<Ride()> task([this, rider] { return line.ride(rider, BootClock::now()); });
    auto result = task.get_future();
    threads_.emplace_back(std::move(task));
    while (line.gathered() == before && result.wait_for(0s) != std::future_status::ready) {
      std::this_thread::yield();
    }
    return result;
  }

  void go_first() { ASSERT_TRUE(line.go_first(BootClock::now())); }

  const Millis patience_;
  std::function<void(Rider&)> on_rider = [](Rider& rider) { rider.answered(); };
  std::function<void()> on_batch = [] {};
  Mutex mutex;
  std::vector<Numbers> batches;
  std::function<std::unique_ptr<Line::Trip>(const Line::Batch&)> on_departed = [](const auto&) {
    return nullptr;
  };
  Line line{[this](const Line::Batch& batch) {
              Numbers numbers;
              for (const auto& rider : batch)
                numbers.push_back(static_cast<Numbered&>(*rider).number);
              {
                MutexLock lock(mutex);
                batches.push_back(std::move(numbers));
              }
              on_batch();
              for (const auto& rider : batch) {
                if (rider->begin()) on_rider(*rider);
              }
              return on_departed(batch);
            },
            patience_};

 private:
  std::vector<std::thread> threads_;
};

TEST_F(LineTest, OneGoesAtOnceAndAgain) {
  for (int i = 0; i < 3; ++i) {
    go_first();
    EXPECT_FALSE(line.go_first(BootClock::now()));
    line.back();
  }
  EXPECT_TRUE(batches.empty());
}

TEST_F(LineTest, ThoseWhoComeMeanwhileGoTogetherInTheirOrder) {
  go_first();
  std::vector<std::future<Ride>> rides;
  for (const int number : {1, 2, 3}) rides.push_back(ride(number));
  line.back();
  for (auto& it : rides) EXPECT_EQ(it.get(), Ride::answered);
  EXPECT_THAT(batches, ElementsAre(ElementsAre(1, 2, 3)));
  // And the next one goes at once again, when the thread has seen that nobody is left.
  while (!line.go_first(BootClock::now())) std::this_thread::yield();
  line.back();
}

TEST_F(LineTest, WhoComesDuringABatchGoesWithTheNext) {
  std::latch out(1);
  std::latch go_on(1);
  on_batch = [&] {
    if (batches.size() > 1) return;
    out.count_down();
    go_on.wait();
  };
  go_first();
  auto first = ride(1);
  line.back();
  out.wait();
  auto second = ride(2);
  auto third = ride(3);
  go_on.count_down();
  for (auto* it : {&first, &second, &third}) EXPECT_EQ(it->get(), Ride::answered);
  EXPECT_THAT(batches, ElementsAre(ElementsAre(1), ElementsAre(2, 3)));
}

// Answers when it has arrived.
class Travelling final : public Line::Trip {
 public:
  Travelling(Line::Batch batch, std::function<void()> on_arrival)
      : batch_(std::move(batch)), on_arrival_(std::move(on_arrival)) {}
  void arrive() override {
    on_arrival_();
    for (const auto& rider : batch_) rider->answered();
  }

 private:
  const Line::Batch batch_;
  const std::function<void()> on_arrival_;
};

// Two batches, the second of which gathers while the first departs.
class TwoBatchesTest : public LineTest {
 protected:
  explicit TwoBatchesTest(Millis patience = kEndless) : LineTest(patience) {
    on_rider = [](Rider&) {};
    on_departed = [this](const Line::Batch& batch) {
      if (batches.size() == 1) {
        departed_.count_down();
        go_on_.wait();
      } else {
        second_departed.count_down();
      }
      return std::make_unique<Travelling>(batch, batches.size() == 1 ? on_first : on_second);
    };
  }

  // Who is to go with the second.
  std::future<Ride> depart(const std::function<void()>& gather) {
    go_first();
    auto first = ride(1);
    line.back();
    departed_.wait();
    gather();
    go_on_.count_down();
    return first;
  }

  void wait_for_the_second() {
    const BootTime end = BootClock::now() + 20s;
    while (!second_departed.try_wait()) {
      if (BootClock::now() > end) {
        ADD_FAILURE() << "it does not depart";
        return;
      }
      std::this_thread::yield();
    }
  }

  std::latch second_departed{1};
  std::function<void()> on_first = [] {};
  std::function<void()> on_second = [] {};

 private:
  std::latch departed_{1};
  std::latch go_on_{1};
};

TEST_F(TwoBatchesTest, TheNextDepartsBeforeTheOneBeforeItHasArrived) {
  std::atomic<bool> first_arrived = false;
  on_first = [&] {
    wait_for_the_second();
    first_arrived = true;
  };
  on_second = [&] { EXPECT_TRUE(first_arrived) << "they arrive in their order"; };
  std::vector<std::future<Ride>> rides;
  auto first = depart([&] {
    for (int i = 0; i < static_cast<int>(Line::kEnoughRiders); ++i) rides.push_back(ride(2 + i));
  });
  EXPECT_EQ(first.get(), Ride::answered);
  for (auto& it : rides) EXPECT_EQ(it.get(), Ride::answered);
  EXPECT_THAT(batches, ElementsAre(ElementsAre(1), ElementsAre(2, 3, 4, 5, 6, 7, 8, 9)));
  while (!line.go_first(BootClock::now())) std::this_thread::yield();
  line.back();
}

TEST_F(TwoBatchesTest, FewDepartWhenTheOneBeforeThemHasArrived) {
  on_first = [&] { EXPECT_FALSE(second_departed.try_wait()); };
  std::future<Ride> second, third;
  auto first = depart([&] {
    second = ride(2);
    third = ride(3);
  });
  for (auto* it : {&first, &second, &third}) EXPECT_EQ(it->get(), Ride::answered);
}

TEST_F(TwoBatchesTest, WhatKeepsLeasesAliveDepartsAtOnce) {
  on_first = [&] { wait_for_the_second(); };
  std::future<Ride> second;
  auto first = depart([&] { second = ride(2, context(10s, {}, /*urgent=*/true)); });
  EXPECT_EQ(first.get(), Ride::answered);
  EXPECT_EQ(second.get(), Ride::answered);
}

TEST_F(TwoBatchesTest, WhoIsAnsweredByTheFirstDoesNotWaitForTheSecond) {
  std::latch answered(1);
  on_second = [&] { answered.wait(); };
  std::future<Ride> second;
  auto first = depart([&] { second = ride(2, context(10s, {}, /*urgent=*/true)); });
  EXPECT_EQ(first.get(), Ride::answered);
  answered.count_down();
  EXPECT_EQ(second.get(), Ride::answered);
}

TEST_F(LineTest, WhatKeepsLeasesAliveGoesFirst) {
  go_first();
  std::vector<std::future<Ride>> rides;
  rides.push_back(ride(1));
  rides.push_back(ride(2, context(10s, {}, /*urgent=*/true)));
  rides.push_back(ride(3));
  rides.push_back(ride(4, context(10s, {}, /*urgent=*/true)));
  line.back();
  for (auto& it : rides) EXPECT_EQ(it.get(), Ride::answered);
  EXPECT_THAT(batches, ElementsAre(ElementsAre(2, 4, 1, 3)));
}

TEST_F(LineTest, ABatchHasSoManyAndTheOthersComeNext) {
  go_first();
  std::vector<std::future<Ride>> rides;
  const int most = static_cast<int>(Line::kMostRiders);
  for (int number = 0; number < most + 1; ++number) rides.push_back(ride(number));
  line.back();
  for (auto& it : rides) EXPECT_EQ(it.get(), Ride::answered);
  ASSERT_EQ(batches.size(), 2u);
  EXPECT_EQ(batches[0].size(), Line::kMostRiders);
  EXPECT_THAT(batches[1], ElementsAre(most));
}

struct ImpatientLineTest : LineTest {
  ImpatientLineTest() : LineTest(Line::kPatience) {}
};

TEST_F(ImpatientLineTest, NobodyWaitsLongForTheBatchBeforeIt) {
  go_first();
  EXPECT_EQ(ride(1).get(), Ride::on_its_own) << "it waited as long as it may";
  const auto late = std::make_shared<Numbered>(2, context());
  const std::size_t waited = line.gathered();
  EXPECT_EQ(line.ride(late, BootClock::now()), Ride::on_its_own);
  EXPECT_EQ(line.gathered(), waited) << "it did not even join those who wait";
  // They are not done a second time.
  on_rider = [](Rider&) { ADD_FAILURE(); };
  line.back();
  while (!line.go_first(BootClock::now())) std::this_thread::yield();
  line.back();
}

struct ImpatientTwoBatchesTest : TwoBatchesTest {
  ImpatientTwoBatchesTest() : TwoBatchesTest(Line::kPatience) {}
};

TEST_F(ImpatientTwoBatchesTest, NobodyWaitsLongerThoughTheNextHasDeparted) {
  std::latch alone(1);
  on_first = [&] { alone.wait(); };
  BootTime since;
  std::future<Ride> second;
  auto first = depart([&] {
    since = BootClock::now();
    while (BootClock::now() < since + Line::kPatience / 2) std::this_thread::yield();
    second = ride(2, context(10s, {}, /*urgent=*/true));
  });
  wait_for_the_second();
  while (BootClock::now() < since + Line::kPatience) std::this_thread::yield();
  const auto late = std::make_shared<Numbered>(3, context());
  const std::size_t waited = line.gathered();
  EXPECT_EQ(line.ride(late, BootClock::now()), Ride::on_its_own);
  EXPECT_EQ(line.gathered(), waited) << "the first has been out for so long";
  alone.count_down();
  EXPECT_EQ(first.get(), Ride::answered);
  EXPECT_EQ(second.get(), Ride::answered);
}

TEST_F(LineTest, WhoIsStoppedOrOutOfTimeBeforeItBeganIsNotDone) {
  go_first();
  std::stop_source stop;
  auto stopped = ride(1, context(10s, stop.get_token()));
  auto out_of_time = ride(2, context(20ms));
  auto other = ride(3);
  stop.request_stop();
  EXPECT_EQ(stopped.get(), Ride::not_begun);
  EXPECT_EQ(out_of_time.get(), Ride::not_begun);
  Numbers done;
  on_rider = [&](Rider& rider) {
    done.push_back(static_cast<Numbered&>(rider).number);
    rider.answered();
  };
  line.back();
  EXPECT_EQ(other.get(), Ride::answered);
  EXPECT_THAT(done, ElementsAre(3));
}

TEST_F(LineTest, AStoppedRiderDoesNotBeginAnyMore) {
  go_first();
  std::stop_source stop;
  const auto rider = std::make_shared<Numbered>(1, context(10s, stop.get_token()));
  auto riding = std::async(std::launch::async, [&] { return line.ride(rider, BootClock::now()); });
  while (line.gathered() == 0) std::this_thread::yield();
  stop.request_stop();
  EXPECT_FALSE(rider->begin());
  rider->left_behind();
  EXPECT_EQ(riding.get(), Ride::not_begun);
  line.back();
}

TEST_F(LineTest, EachGivesUpByItsOwnTimeAndStopAlsoOnTheWay) {
  std::promise<void> go_on;
  auto waits = go_on.get_future().share();
  std::latch begun(3);
  std::vector<Rider*> on_board;
  on_rider = [&](Rider& rider) {
    on_board.push_back(&rider);
    begun.count_down();
    if (on_board.size() < 3) return;
    waits.wait();
    for (Rider* it : on_board) it->answered();
  };
  go_first();
  std::stop_source stop;
  auto patient = ride(1);
  auto stopped = ride(2, context(10s, stop.get_token()));
  auto out_of_time = ride(3, context(100ms));
  line.back();
  begun.wait();
  EXPECT_EQ(out_of_time.get(), Ride::not_finished);
  stop.request_stop();
  EXPECT_EQ(stopped.get(), Ride::not_finished);
  EXPECT_EQ(patient.wait_for(0s), std::future_status::timeout);
  go_on.set_value();
  EXPECT_EQ(patient.get(), Ride::answered);
}

TEST_F(LineTest, WhoIsLeftBehindWhenItsTimeIsOverIsNotDone) {
  on_rider = [](Rider& rider) {
    while (!rider.is_over()) std::this_thread::yield();
    rider.left_behind();
  };
  go_first();
  auto late = ride(1, context(20ms));
  line.back();
  EXPECT_THAT(late.get(), ::testing::AnyOf(Ride::not_begun, Ride::not_finished));
}

TEST_F(LineTest, WhoNeedNotWaitForTheOthersIsWokenBeforeTheBatchIsOver) {
  std::promise<void> go_on;
  auto waits = go_on.get_future().share();
  on_rider = [&](Rider& rider) {
    const bool is_first = static_cast<Numbered&>(rider).number == 1;
    if (!is_first) waits.wait();
    rider.left_behind();
    if (is_first) rider.wake();
  };
  go_first();
  auto woken = ride(1);
  auto last = ride(2);
  line.back();
  EXPECT_EQ(woken.wait_for(20s), std::future_status::ready);
  go_on.set_value();
  EXPECT_EQ(woken.get(), Ride::on_its_own);
  EXPECT_EQ(last.get(), Ride::on_its_own);
}

TEST_F(LineTest, WhoLeavesItsBatchBeforeItBeganIsNotDone) {
  std::stop_source stop;
  std::future<Ride> stopped;
  on_batch = [&] {
    stop.request_stop();
    stopped.wait();
  };
  Numbers done;
  on_rider = [&](Rider& rider) {
    done.push_back(static_cast<Numbered&>(rider).number);
    rider.answered();
  };
  go_first();
  stopped = ride(1, context(10s, stop.get_token()));
  auto other = ride(2);
  line.back();
  EXPECT_EQ(other.get(), Ride::answered);
  EXPECT_EQ(stopped.get(), Ride::not_begun);
  EXPECT_THAT(done, ElementsAre(2));
}

TEST_F(LineTest, WhoseTimeIsOverIsNotBegun) {
  Rider late(context(0ms));
  EXPECT_FALSE(late.begin());
  EXPECT_FALSE(late.has_begun());
  Rider in_time(context(10s));
  EXPECT_TRUE(in_time.begin());
}

TEST_F(LineTest, NoBatchIsMadeOfThoseWhoHaveGone) {
  go_first();
  std::stop_source stop;
  auto first = ride(1, context(10s, stop.get_token()));
  auto second = ride(2, context(10s, stop.get_token()));
  stop.request_stop();
  EXPECT_EQ(first.get(), Ride::not_begun);
  EXPECT_EQ(second.get(), Ride::not_begun);
  line.back();
  while (!line.go_first(BootClock::now())) std::this_thread::yield();
  line.back();
  EXPECT_TRUE(batches.empty());
}

TEST_F(LineTest, WhoIsLeftBehindGoesOnItsOwn) {
  on_rider = [](Rider& rider) {
    if (static_cast<Numbered&>(rider).number == 1) {
      rider.left_behind();
    } else {
      rider.answered();
    }
    rider.left_behind();  // only the first word counts
  };
  go_first();
  auto left = ride(1);
  auto done = ride(2);
  line.back();
  EXPECT_EQ(left.get(), Ride::on_its_own);
  EXPECT_EQ(done.get(), Ride::answered);
}

}  // namespace
}  // namespace leasehold
