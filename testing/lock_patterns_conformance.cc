#include "testing/lock_patterns_conformance.h"

#include <gmock/gmock.h>

#include <atomic>
#include <future>
#include <thread>

#include "leasehold/run_while_held.h"
#include "testing/raw_store.h"
#include "testing/results.h"

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

}  // namespace leasehold::testing
