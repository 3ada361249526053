#include "leasehold/reentrant_lock.h"

#include <gmock/gmock.h>

#include <future>
#include <optional>
#include <vector>

#include "fake_store.h"
#include "testing/results.h"

namespace leasehold {
namespace {

using namespace std::chrono_literals;
using namespace leasehold::testing;
using ::testing::AllOf;
using ::testing::HasSubstr;

class ReentrantLockTest : public LockPatternTest {
 protected:
  // On a thread of its own.
  template <class Lock>
  static auto acquire(Lock& reentrant, AcquireOptions options = {}) {
    return std::async(std::launch::async,
                      [&reentrant, options] { return reentrant.acquire(options); });
  }

  FencedReentrantLock lock{client, name("job")};
};

TEST_F(ReentrantLockTest, TakenAgainItIsOneLeaseUntilTheLastHasGone) {
  auto outer = lock.acquire();
  ASSERT_TRUE(outer) << to_string(outer.error());
  {
    const auto inner = lock.acquire();
    ASSERT_TRUE(inner);
    EXPECT_EQ(inner->lease().token().number, (*outer)->token().number);
    EXPECT_EQ(&inner->lease(), &outer->lease());
  }
  auto inner = lock.acquire();
  EXPECT_EQ(faults->calls(Operation::acquire), 1);
  EXPECT_EQ(outer->release().value(), ReleaseOutcome::released);
  EXPECT_EQ(outer->release().value(), ReleaseOutcome::too_late) << "it counts once";
  EXPECT_FALSE(is_free("job"));
  EXPECT_EQ(faults->calls(Operation::release), 0);
  EXPECT_EQ(inner->release().value(), ReleaseOutcome::released);
  EXPECT_TRUE(is_free("job"));
}

TEST_F(ReentrantLockTest, AnotherObjectIsSomebodyElse) {
  const auto held = lock.acquire();
  FencedReentrantLock other(client, name("job"));
  EXPECT_TRUE(bad(other.acquire(), ErrorCode::busy));
}

TEST_F(ReentrantLockTest, LostLeaseIsNotSharedAndNotTakenAnewUnderItsHolders) {
  auto outer = lock.acquire();
  auto inner = lock.acquire();
  ASSERT_TRUE(outer && inner);
  const TokenNumber before = outer->lease().token().number;
  memory.end(outer->lease().request());
  wait_for(outer->lease().lost());
  const auto refused = lock.acquire();
  ASSERT_TRUE(bad(refused, ErrorCode::lost));
  EXPECT_THAT(refused.error().message, AllOf(HasSubstr("'job'"), HasSubstr("all 2 who")));
  EXPECT_EQ(inner->release().value(), ReleaseOutcome::too_late);
  EXPECT_TRUE(bad(lock.acquire(), ErrorCode::lost));
  EXPECT_EQ(faults->calls(Operation::acquire), 1);
  EXPECT_EQ(outer->release().value(), ReleaseOutcome::too_late);
  const auto next = lock.acquire();
  ASSERT_TRUE(next) << to_string(next.error());
  EXPECT_GT(next->lease().token().number, before);
}

TEST_F(ReentrantLockTest, ThreadsOfOneObjectShareWhatOneOfThemAsksFor) {
  faults->next(Operation::acquire, Fault::hang);
  auto first = acquire(lock);
  faults->wait_until_one_hangs();
  auto second = acquire(lock);
  EXPECT_EQ(second.wait_for(20ms), std::future_status::timeout);
  faults->let_go();
  const auto one = first.get();
  const auto two = second.get();
  ASSERT_TRUE(one && two);
  EXPECT_EQ(&one->lease(), &two->lease());
  EXPECT_EQ(faults->calls(Operation::acquire), 1);
}

TEST_F(ReentrantLockTest, WhoWaitedForOneThatFailedAsksItself) {
  auto other = client.acquire("job");
  faults->next(Operation::acquire, Fault::hang);
  auto first = acquire(lock);
  faults->wait_until_one_hangs();
  auto second = acquire(lock, {.wait = 1min});
  faults->let_go();
  EXPECT_TRUE(bad(first.get(), ErrorCode::busy));
  EXPECT_TRUE(good(other->release()));
  EXPECT_TRUE(good(second.get()));
}

TEST_F(ReentrantLockTest, WaitForOneOnItsWayIsBounded) {
  faults->next(Operation::acquire, Fault::hang);
  auto first = acquire(lock);
  faults->wait_until_one_hangs();
  EXPECT_TRUE(bad(lock.acquire({.store_timeout = 1ms}), ErrorCode::busy));
  EXPECT_TRUE(bad(lock.acquire({.wait = 1ms, .store_timeout = 1ms}), ErrorCode::timeout));
  std::stop_source stop;
  auto stopped = acquire(lock, {.wait = Millis::max(), .stop = stop.get_token()});
  stop.request_stop();
  EXPECT_TRUE(bad(stopped.get(), ErrorCode::cancelled));
  faults->let_go();
  EXPECT_TRUE(good(first.get()));
}

TEST_F(ReentrantLockTest, NobodySharesALeaseThatIsBeingGivenBack) {
  auto held = lock.acquire();
  const TokenNumber before = held->lease().token().number;
  faults->next(Operation::release, Fault::hang);
  auto leaving = std::async(std::launch::async, [&] { return held->release(); });
  faults->wait_until_one_hangs();
  auto coming = acquire(lock);
  EXPECT_EQ(coming.wait_for(20ms), std::future_status::timeout);
  faults->let_go();
  EXPECT_EQ(leaving.get().value(), ReleaseOutcome::released);
  const auto next = coming.get();
  ASSERT_TRUE(next) << to_string(next.error());
  EXPECT_GT(next->lease().token().number, before);
}

TEST_F(ReentrantLockTest, ReleaseThatFailsLeavesItToTheBackground) {
  auto held = lock.acquire();
  faults->next(Operation::release, Fault::refuse, 3);
  EXPECT_TRUE(bad(held->release(1ms), ErrorCode::unavailable));
  EXPECT_TRUE(good(lock.acquire({.wait = 30s})));
}

TEST_F(ReentrantLockTest, AnotherModeIsRefusedBecauseItWouldWaitForItself) {
  const auto held = lock.acquire();
  const auto refused = lock.acquire({.wait = 1h, .mode = Mode::shared()});
  ASSERT_TRUE(bad(refused, ErrorCode::invalid));
  EXPECT_THAT(refused.error().message,
              AllOf(HasSubstr("exclusive"), HasSubstr("shared"), HasSubstr("wait for itself")));
}

TEST_F(ReentrantLockTest, HoldsAreMovedAndMayOutliveTheObject) {
  auto other = std::make_optional<ReentrantLock>(client, name("other"));
  auto first = other->acquire();
  auto second = other->acquire();
  ASSERT_TRUE(first && second);
  other.reset();
  *first = std::move(*second);
  EXPECT_EQ(first->lease().state(), LeaseState::held);
  EXPECT_EQ(faults->calls(Operation::release), 0);
  EXPECT_EQ(first->release().value(), ReleaseOutcome::released);
  EXPECT_TRUE(is_free("other"));
}

TEST_F(ReentrantLockTest, LostRepliesAreOneLease) {
  faults->next(Operation::acquire, Fault::lose_reply, 2);
  auto held = lock.acquire();
  ASSERT_TRUE(held) << to_string(held.error());
  EXPECT_EQ(held->lease().token().number.value(), 1) << "granted once";
  faults->next(Operation::release, Fault::lose_request);
  EXPECT_EQ(held->release().value(), ReleaseOutcome::released);
  EXPECT_TRUE(is_free("job"));
}

TEST_F(ReentrantLockTest, ManyThreadsTakeAndGiveBack) {
  std::vector<std::future<void>> threads;
  for (int i = 0; i < 4; ++i) {
    threads.push_back(std::async(std::launch::async, [&] {
      for (int turn = 0; turn < 200; ++turn) {
        auto outer = lock.acquire({.wait = 1min});
        ASSERT_TRUE(outer) << to_string(outer.error());
        const auto inner = lock.acquire();
        ASSERT_TRUE(inner) << to_string(inner.error());
        EXPECT_EQ(inner->lease().state(), LeaseState::held);
        if (turn % 2 == 0) {
          EXPECT_TRUE(good(outer->release()));
        }
      }
    }));
  }
  for (auto& thread : threads) thread.get();
  EXPECT_TRUE(client.acquire("job", {.wait = 30s})) << "nothing is left of them";
}

}  // namespace
}  // namespace leasehold
