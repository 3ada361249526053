#include "testing/lock_patterns_conformance.h"

#include <gmock/gmock.h>

#include <atomic>
#include <future>
#include <thread>

#include "leasehold/permits.h"
#include "leasehold/rate_limit.h"
#include "leasehold/read_write_lock.h"
#include "leasehold/reentrant_lock.h"
#include "leasehold/run_while_held.h"
#include "leasehold/several_locks.h"
#include "leasehold/single_flight.h"
#include "testing/raw_store.h"
#include "testing/results.h"
#include "testing/value_cache.h"

namespace leasehold::testing {

using namespace std::chrono_literals;

namespace {

// Returns when it has been requested.
void wait_for(const std::stop_token& stop) {
  std::promise<void> told;
  const std::stop_callback callback(stop, [&] { told.set_value(); });
  EXPECT_EQ(told.get_future().wait_for(60s), std::future_status::ready) << "it was not told";
}

}  // namespace

// ---- run_while_held ------------------------------------------------------------------------

TEST_P(LockPatternsConformance, WorkRunsAloneAndTheLockIsFreeAfterIt) {
  Client one = client();
  Client two = client();
  for (int i = 0; i < 3; ++i) {
    const auto ran = run_while_held(one, "job", [&](std::stop_token) {
      EXPECT_TRUE(bad(two.acquire("job"), ErrorCode::busy));
      EXPECT_TRUE(
          bad(run_while_held(two, "job", [](std::stop_token) { FAIL(); }), ErrorCode::busy));
      return i;
    });
    ASSERT_TRUE(ran) << to_string(ran.error());
    EXPECT_EQ(ran->result, i);
    EXPECT_TRUE(ran->held);
    EXPECT_FALSE(ran->told_to_stop);
    auto next = two.acquire("job");
    ASSERT_TRUE(good(next));
    EXPECT_TRUE(good(next->release()));
  }
}

TEST_P(LockPatternsConformance, WorkOfManyThreadsIsNeverSideBySide) {
  std::atomic<int> working = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      Client own = client();
      for (int turn = 0; turn < 10; ++turn) {
        const auto ran =
            run_while_held(own, "job", {.acquire = {.wait = 60s}}, [&](std::stop_token) {
              EXPECT_EQ(++working, 1);
              std::this_thread::yield();
              --working;
            });
        ASSERT_TRUE(ran) << to_string(ran.error());
        EXPECT_TRUE(ran->held);
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

TEST_P(LockPatternsConformance, WorkWhoseLockWasTakenAwayIsToldToStop) {
  Client one = client();
  Client operators = client();
  const RunOptions options{.acquire = {.ttl = 3s}};
  const auto ran =
      run_while_held(one, "job", options, [&](const std::stop_token& stop, const Lease& lease) {
        const auto taken = operators.force_release(lease.lock(), lease.request());
        EXPECT_EQ(taken.value(), ReleaseReply::released);
        wait_for(stop);
      });
  ASSERT_TRUE(ran) << to_string(ran.error());
  EXPECT_FALSE(ran->held);
  EXPECT_TRUE(ran->told_to_stop);
}

TEST_P(LockPatternsConformance, FencedWorkHasATokenOrIsRefused) {
  Client one = client();
  std::int64_t last = 0;
  for (int i = 0; i < 3; ++i) {
    const auto ran = run_while_held_fenced(
        one, "job",
        [](std::stop_token, const FencedLease& lease) { return lease.token().number.value(); });
    if (!fenced()) {
      EXPECT_TRUE(bad(ran, ErrorCode::unsafe_for_correctness));
      continue;
    }
    ASSERT_TRUE(ran) << to_string(ran.error());
    EXPECT_GT(ran->result, last);
    last = ran->result;
  }
}

TEST_P(LockPatternsConformance, WorkBehindLostRepliesRunsOnce) {
  const auto faults = std::make_shared<Faults>();
  Client one = faulty_client(faults);
  faults->next(Operation::acquire, Fault::lose_reply);
  faults->next(Operation::release, Fault::lose_reply);
  int worked = 0;
  const auto ran = run_while_held(one, "job", [&](std::stop_token) { ++worked; });
  ASSERT_TRUE(ran) << to_string(ran.error());
  EXPECT_EQ(worked, 1);
  EXPECT_TRUE(client().acquire("job", {.wait = 30s}));
}

// ---- several locks -------------------------------------------------------------------------

TEST_P(LockPatternsConformance, SeveralLocksAreAllTakenOrNone) {
  Client one = client();
  Client two = client();
  auto held = acquire_all(one, {"c", "a", "b"});
  ASSERT_TRUE(held) << to_string(held.error());
  EXPECT_TRUE(held->require(1s));
  for (const char* lock : {"a", "b", "c"}) EXPECT_TRUE(bad(two.acquire(lock), ErrorCode::busy));
  const auto refused = acquire_all(two, {"0", "b", "d"});
  ASSERT_TRUE(bad(refused, ErrorCode::busy));
  EXPECT_THAT(refused.error().message, ::testing::HasSubstr("because of 'b'"));
  EXPECT_TRUE(good(one.acquire("0"))) << "it was given back";
  EXPECT_TRUE(good(one.acquire("d")));
  EXPECT_EQ(held->release().value(), ReleaseOutcome::released);
  for (const char* lock : {"a", "b", "c"}) EXPECT_TRUE(good(two.acquire(lock))) << lock;
}

TEST_P(LockPatternsConformance, SeveralLocksTheOtherWayRoundDoNotDeadlock) {
  const auto work = [&](std::initializer_list<std::string_view> locks) {
    Client own = client();
    for (int i = 0; i < 10; ++i) {
      auto held = acquire_all(own, locks, {.wait = 60s});
      ASSERT_TRUE(held) << to_string(held.error());
      ASSERT_TRUE(good(held->release()));
    }
  };
  auto other = std::async(std::launch::async, [&] { work({"a", "b", "c"}); });
  work({"c", "b", "a"});
  other.get();
}

TEST_P(LockPatternsConformance, TheFirstLossOfSeveralIsTold) {
  Client one = client();
  Client operators = client();
  auto held = acquire_all(one, {"a", "b"}, {.ttl = 3s});
  ASSERT_TRUE(held) << to_string(held.error());
  const Lease& second = held->each().back();
  ASSERT_TRUE(good(operators.force_release(second.lock(), second.request())));
  wait_for(held->lost());
  EXPECT_TRUE(bad(held->require(), ErrorCode::lost));
  EXPECT_EQ(held->release().value(), ReleaseOutcome::too_late);
  EXPECT_TRUE(good(operators.acquire("a", {.wait = 30s})));
}

TEST_P(LockPatternsConformance, SeveralTokensAreThoseOfTheirLocks) {
  Client one = client();
  const auto held = acquire_all_fenced(one, {"a", "b"});
  if (!fenced()) {
    EXPECT_TRUE(bad(held, ErrorCode::unsafe_for_correctness));
    return;
  }
  ASSERT_TRUE(held) << to_string(held.error());
  for (const FencedLease& lease : held->each()) {
    EXPECT_EQ(lease.token().lineage.lock, lease.lock());
  }
}

// ---- reentrant -----------------------------------------------------------------------------

TEST_P(LockPatternsConformance, ReentrantLockIsOneGrantUntilTheLastHasGone) {
  const auto faults = std::make_shared<Faults>();
  ReentrantLock lock(faulty_client(faults), lock_name("job"));
  Client other = client();
  auto outer = lock.acquire();
  auto inner = lock.acquire();
  ASSERT_TRUE(outer && inner);
  EXPECT_EQ(outer->lease().request(), inner->lease().request());
  EXPECT_EQ(faults->calls(Operation::acquire), 1);
  EXPECT_EQ(outer->release().value(), ReleaseOutcome::released);
  EXPECT_TRUE(bad(other.acquire("job"), ErrorCode::busy));
  EXPECT_EQ(inner->release().value(), ReleaseOutcome::released);
  EXPECT_TRUE(good(other.acquire("job")));
}

TEST_P(LockPatternsConformance, ReentrantLockThatWasLostIsTakenAnewWhenAllHaveGone) {
  ReentrantLock lock(client(), lock_name("job"));
  Client operators = client();
  auto outer = lock.acquire({.ttl = 3s});
  ASSERT_TRUE(outer) << to_string(outer.error());
  ASSERT_TRUE(good(operators.force_release(lock_name("job"), outer->lease().request())));
  wait_for(outer->lease().lost());
  EXPECT_TRUE(bad(lock.acquire(), ErrorCode::lost));
  EXPECT_EQ(outer->release().value(), ReleaseOutcome::too_late);
  EXPECT_TRUE(good(lock.acquire({.wait = 30s})));
}

// ---- readers and writers, permits ----------------------------------------------------------

TEST_P(LockPatternsConformance, ReadersAndAWriterKeepApartOrAreRefused) {
  Client one = client();
  ReadWriteLock lock(one, lock_name("catalogue"));
  auto first = lock.read();
  if (!one.store().modes) {
    EXPECT_TRUE(bad(first, ErrorCode::unsupported));
    EXPECT_TRUE(good(lock.write())) << "that is an exclusive lock";
    return;
  }
  ASSERT_TRUE(first) << to_string(first.error());
  ReadWriteLock elsewhere(client(), lock_name("catalogue"));
  auto second = elsewhere.read();
  ASSERT_TRUE(second) << to_string(second.error());
  EXPECT_TRUE(bad(elsewhere.write(), ErrorCode::busy));
  EXPECT_TRUE(good(first->release()));
  EXPECT_TRUE(good(second->release()));
  const auto writer = elsewhere.write();
  ASSERT_TRUE(writer) << to_string(writer.error());
  EXPECT_TRUE(bad(lock.read(), ErrorCode::busy));
}

TEST_P(LockPatternsConformance, PermitsHaveSlotsAndFencesOfTheirOwnOrAreRefused) {
  Client one = client();
  auto permits = Permits::of(one, "gpu", 2).value();
  auto first = permits.acquire();
  if (!one.store().modes) {
    EXPECT_TRUE(bad(first, ErrorCode::unsupported));
    return;
  }
  ASSERT_TRUE(first) << to_string(first.error());
  auto elsewhere = Permits::of(client(), "gpu", 2).value();
  const auto second = elsewhere.acquire();
  ASSERT_TRUE(second) << to_string(second.error());
  EXPECT_EQ(first->slot(), Slot{0});
  EXPECT_EQ(first->resource().str(), "gpu#0");
  EXPECT_EQ(second->resource().str(), "gpu#1");
  EXPECT_TRUE(bad(elsewhere.acquire(), ErrorCode::busy));
  EXPECT_TRUE(good(first->release()));
  const auto third = elsewhere.acquire_fenced();
  if (!fenced()) {
    EXPECT_TRUE(bad(third, ErrorCode::unsafe_for_correctness));
    return;
  }
  ASSERT_TRUE(third) << to_string(third.error());
  EXPECT_EQ(third->resource().str(), "gpu#0");
  EXPECT_EQ(third->token().lineage.lock.str(), "gpu");
}

TEST_P(LockPatternsConformance, FencedReadersHaveTokensOfTheirOwn) {
  Client one = client();
  if (!one.store().modes || !fenced()) return;  // told by the cases above
  ReadWriteLock lock(one, lock_name("catalogue"));
  auto first = lock.read_fenced();
  auto second = lock.read_fenced();
  ASSERT_TRUE(first && second);
  EXPECT_NE(first->token().number, second->token().number);
  ASSERT_TRUE(good(first->release()));
  ASSERT_TRUE(good(second->release()));
  const auto writer = lock.write_fenced();
  ASSERT_TRUE(writer) << to_string(writer.error());
  EXPECT_GT(writer->token().number, second->token().number);
}

// ---- single flight -------------------------------------------------------------------------

TEST_P(LockPatternsConformance, ManyWhoFindNoValueComputeItOnce) {
  ValuesInMemory cache;
  std::atomic<int> computed = 0;
  std::vector<std::future<Result<Fetched>>> callers;
  for (int i = 0; i < 6; ++i) {
    callers.push_back(std::async(std::launch::async, [&] {
      SingleFlight flight(client(), cache);
      const auto compute = [&](std::stop_token) -> Result<std::string> {
        ++computed;
        return "a";
      };
      return flight.fetch(lock_name("front page"), compute,
                          {.fresh_for = 1h, .lock = {.wait = 60s}});
    }));
  }
  for (auto& caller : callers) {
    const auto got = caller.get();
    ASSERT_TRUE(got) << to_string(got.error());
    EXPECT_EQ(got->value, "a");
  }
  EXPECT_EQ(computed, 1);
}

// ---- rate limit ----------------------------------------------------------------------------

TEST_P(LockPatternsConformance, TurnsAreNoMoreThanTheRateOrRefused) {
  Client one = client();
  auto limit = RateLimit::of(one, "calls", {2, 1min});
  if (!one.store().modes) {
    EXPECT_TRUE(bad(limit, ErrorCode::unsupported));
    return;
  }
  auto elsewhere = RateLimit::of(client(), "calls", {2, 1min}).value();
  EXPECT_TRUE(good(limit->take_turn()));
  EXPECT_TRUE(good(elsewhere.take_turn()));
  EXPECT_TRUE(bad(limit->take_turn(), ErrorCode::busy));
  auto brief = RateLimit::of(one, "brief", {1, 500ms}).value();
  for (int turn = 0; turn < 3; ++turn) EXPECT_TRUE(good(brief.take_turn({.wait = 60s})));
}

// Whoever took it may have died since.
TEST_P(LockPatternsConformance, TurnNeedsNobodyWhereTheStoreKeepsIt) {
  Client one = client();
  auto limit = RateLimit::of(one, "calls", {1, 1min});
  if (!limit) return;  // told by the case above
  ASSERT_TRUE(good(limit->take_turn()));
  limit = fail(ErrorCode::cancelled, "");
  auto elsewhere = RateLimit::of(client(), "calls", {1, 1min}).value();
  if (one.store().keeps_after_release) {
    EXPECT_TRUE(bad(elsewhere.take_turn(), ErrorCode::busy));
  } else {
    EXPECT_TRUE(good(elsewhere.take_turn({.wait = 30s}))) << "before the minute is over";
  }
}

TEST_P(LockPatternsConformance, TurnCountsThoughItsReleaseIsLost) {
  const auto faults = std::make_shared<Faults>();
  Client one = faulty_client(faults);
  auto limit = RateLimit::of(one, "calls", {1, 1min});
  if (!limit) return;  // told by the case above
  faults->always(Operation::release, Fault::lose_request);
  ASSERT_TRUE(good(limit->take_turn({.store_timeout = 200ms})));
  auto elsewhere = RateLimit::of(client(), "calls", {1, 1min}).value();
  EXPECT_TRUE(bad(elsewhere.take_turn(), ErrorCode::busy));
}

}  // namespace leasehold::testing
