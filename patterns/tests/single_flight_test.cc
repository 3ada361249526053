#include "leasehold/single_flight.h"

#include <gmock/gmock.h>

#include <atomic>
#include <future>
#include <limits>
#include <vector>

#include "fake_store.h"
#include "testing/results.h"
#include "testing/value_cache.h"

namespace leasehold {
namespace {

using namespace std::chrono_literals;
using namespace leasehold::testing;
using From = Fetched::From;

// One number, as long as a test likes.
class FixedRandom final : public Random {
 public:
  std::uint64_t next() override { return number; }
  std::atomic<std::uint64_t> number = std::numeric_limits<std::uint64_t>::max();
};

class SingleFlightTest : public LockPatternTest {
 protected:
  SingleFlight::Compute returning(const std::string& value) {
    return [this, value](std::stop_token) {
      ++computed;
      return value;
    };
  }
  static SingleFlight::Compute never() {
    return [](std::stop_token) -> Result<std::string> {
      ADD_FAILURE() << "it was computed";
      return fail(ErrorCode::internal, "");
    };
  }

  const LockName key = name("front page");
  ValuesInMemory cache;
  FixedRandom random;
  FakeClock computing;
  SingleFlight flight{client, cache, computing, random};
  std::atomic<int> computed = 0;
};

TEST_F(SingleFlightTest, IsComputedOnceAndThenCached) {
  const auto first = flight.fetch(key, returning("a"), {.fresh_for = 1h});
  ASSERT_TRUE(first) << to_string(first.error());
  EXPECT_EQ(first->from, From::computed);
  const auto second = flight.fetch(key, never());
  ASSERT_TRUE(second) << to_string(second.error());
  EXPECT_EQ(second->value, "a");
  EXPECT_EQ(second->from, From::cache);
}

TEST_F(SingleFlightTest, ManyWhoFindNothingComputeItOnce) {
  std::vector<std::future<Result<Fetched>>> callers;
  for (int i = 0; i < 8; ++i) {
    callers.push_back(std::async(std::launch::async, [&] {
      return flight.fetch(key, returning("a"), {.lock = {.wait = 1min}});
    }));
  }
  for (auto& caller : callers) {
    const auto got = caller.get();
    ASSERT_TRUE(got) << to_string(got.error());
    EXPECT_EQ(got->value, "a");
  }
  EXPECT_EQ(computed, 1);
}

TEST_F(SingleFlightTest, OneComputesAndTheOthersTakeTheOldOneAtOnce) {
  ASSERT_TRUE(cache.put(key.str(), {"old", -1s, 1s}));
  std::promise<void> computes;
  std::promise<void> go_on;
  auto computing_one = std::async(std::launch::async, [&] {
    return flight.fetch(key, [&](std::stop_token) -> Result<std::string> {
      computes.set_value();
      go_on.get_future().wait();
      return "new";
    });
  });
  computes.get_future().wait();
  const auto old = flight.fetch(key, never());
  ASSERT_TRUE(old) << to_string(old.error());
  EXPECT_EQ(old->value, "old");
  EXPECT_EQ(old->from, From::stale);
  go_on.set_value();
  EXPECT_EQ(computing_one.get()->value, "new");
  EXPECT_EQ(flight.fetch(key, never())->value, "new");
}

TEST_F(SingleFlightTest, FreshValueIsComputedEarlyByChanceAndByWhatItCosts) {
  struct Case {
    Millis fresh_for;
    Millis took;
    double eagerness;
    double chance;  // the random number, of 1
    bool early;
  };
  constexpr double third = 0.36;  // the natural logarithm is a little above -1.03
  for (const Case& it : {Case{1000s, 1100s, 1, third, true}, Case{1000s, 900s, 1, third, false},
                         Case{1000s, 900s, 2, third, true}, Case{1000s, 1100s, 0, third, false},
                         Case{1000s, 1100s, 1, 1, false}, Case{1000s, 100s, 1, 1e-6, true}}) {
    ASSERT_TRUE(cache.put(key.str(), {"old", it.fresh_for, it.took}));
    random.number = it.chance == 1 ? std::numeric_limits<std::uint64_t>::max()
                                   : static_cast<std::uint64_t>(it.chance * 0x1p64);
    const auto got = flight.fetch(key, returning("new"), {.eagerness = it.eagerness});
    ASSERT_TRUE(got);
    EXPECT_EQ(got->from == From::computed, it.early)
        << it.took.count() << " " << it.eagerness << " " << it.chance;
  }
}

TEST_F(SingleFlightTest, WhatItTookIsKept) {
  const auto got = flight.fetch(key, [&](std::stop_token) -> Result<std::string> {
    computing.advance(1500us);
    return "a";
  });
  ASSERT_TRUE(got);
  EXPECT_EQ(cache.get(key.str()).value()->took, 2ms);
}

TEST_F(SingleFlightTest, WhatSomebodyElseComputedInBetweenIsNotComputedAgain) {
  faults->next(Operation::acquire, Fault::hang);
  auto late = std::async(std::launch::async, [&] { return flight.fetch(key, never()); });
  faults->wait_until_one_hangs();
  ASSERT_TRUE(cache.put(key.str(), {"new", 1min, 0ms}));
  faults->let_go();
  const auto got = late.get();
  ASSERT_TRUE(got) << to_string(got.error());
  EXPECT_EQ(got->value, "new");
}

TEST_F(SingleFlightTest, FailureOfOneIsItsOwnAndTheNextComputes) {
  std::promise<void> computes;
  std::promise<void> go_on;
  auto failing = std::async(std::launch::async, [&] {
    return flight.fetch(key, [&](std::stop_token) -> Result<std::string> {
      computes.set_value();
      go_on.get_future().wait();
      return fail(ErrorCode::unavailable, "no database");
    });
  });
  computes.get_future().wait();
  auto waiting = std::async(std::launch::async, [&] {
    return flight.fetch(key, returning("a"), {.lock = {.wait = 1min}});
  });
  faults->wait_for_calls(Operation::acquire, 3);
  go_on.set_value();
  EXPECT_TRUE(bad(failing.get(), ErrorCode::unavailable));
  const auto got = waiting.get();
  ASSERT_TRUE(got) << to_string(got.error());
  EXPECT_EQ(got->value, "a");
}

TEST_F(SingleFlightTest, OldValueIsGoodEnoughWhileTheLocksAreOutOfReach) {
  faults->always(Operation::acquire, Fault::refuse);
  const FetchOptions brief{.lock = {.store_timeout = 50ms}};
  EXPECT_TRUE(bad(flight.fetch(key, never(), brief), ErrorCode::unavailable));
  ASSERT_TRUE(cache.put(key.str(), {"old", -1s, 0ms}));
  const auto got = flight.fetch(key, never(), brief);
  ASSERT_TRUE(got) << to_string(got.error());
  EXPECT_EQ(got->from, From::stale);
}

TEST_F(SingleFlightTest, WaitForAnotherIsBounded) {
  const auto other = client.acquire(key);
  EXPECT_TRUE(bad(flight.fetch(key, never(), {.lock = {}}), ErrorCode::busy));
  EXPECT_TRUE(bad(flight.fetch(key, never(), {.lock = {.wait = 5ms}}), ErrorCode::timeout));
}

}  // namespace
}  // namespace leasehold
