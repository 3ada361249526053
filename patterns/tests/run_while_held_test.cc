#include "leasehold/run_while_held.h"

#include <gmock/gmock.h>

#include <stdexcept>
#include <string>

#include "fake_store.h"

namespace leasehold {
namespace {

using namespace std::chrono_literals;
using namespace leasehold::testing;
using ::testing::HasSubstr;

template <class Work>
concept RunsFenced = requires(Client& client, Work work) {
  run_while_held_fenced(client, "job", RunOptions(), work);
};
constexpr auto takes_no_token = [](std::stop_token) {};
constexpr auto takes_a_lease = [](std::stop_token, const FencedLease&) {};
constexpr auto would_release = [](std::stop_token, FencedLease&) {};
static_assert(RunsFenced<decltype(takes_a_lease)>);
static_assert(!RunsFenced<decltype(takes_no_token)>, "it would not enter any fence");
static_assert(!RunsFenced<decltype(would_release)>, "the lease is not the work's to give back");

class RunWhileHeldTest : public LockPatternTest {};
class RunInStandingTimeTest : public StandingTimeTest {};

TEST_F(RunWhileHeldTest, RunsUnderTheLockAndGivesItBack) {
  const auto ran =
      run_while_held(client, "job", [&](const std::stop_token& stop, const Lease& lease) {
        EXPECT_FALSE(stop.stop_requested());
        EXPECT_EQ(lease.lock().str(), "job");
        EXPECT_FALSE(is_free("job"));
        return std::make_unique<int>(7);
      });
  ASSERT_TRUE(ran) << to_string(ran.error());
  EXPECT_EQ(*ran->result, 7);
  EXPECT_TRUE(ran->held);
  EXPECT_FALSE(ran->told_to_stop);
  EXPECT_FALSE(ran->not_released);
  EXPECT_TRUE(is_free("job"));
}

TEST_F(RunWhileHeldTest, WithoutTheLockTheWorkDoesNotRun) {
  const auto held = client.acquire("job");
  bool worked = false;
  const auto ran = run_while_held(client, "job", [&](std::stop_token) { worked = true; });
  ASSERT_FALSE(ran);
  EXPECT_EQ(ran.error().code, ErrorCode::busy);
  EXPECT_FALSE(worked);
}

TEST_F(RunWhileHeldTest, ExceptionPassesAfterTheRelease) {
  faults->next(Operation::release, Fault::hang);
  auto running = std::async(std::launch::async, [&] {
    (void)run_while_held(client, name("job"),
                         [](std::stop_token) { throw std::runtime_error("no paper"); });
  });
  faults->wait_until_one_hangs();
  EXPECT_EQ(running.wait_for(20ms), std::future_status::timeout);
  faults->let_go();
  EXPECT_THROW(running.get(), std::runtime_error);
  EXPECT_TRUE(is_free("job"));
}

TEST_F(RunWhileHeldTest, TokenOfTheFenceIsThatOfTheGrant) {
  std::int64_t last = 0;
  for (int i = 0; i < 3; ++i) {
    const auto ran = run_while_held_fenced(
        client, "job",
        [](std::stop_token, const FencedLease& lease) { return lease.token().number.value(); });
    ASSERT_TRUE(ran);
    EXPECT_GT(ran->result, last);
    last = ran->result;
  }
}

TEST_F(RunInStandingTimeTest, WorkIsToldToStopTheMarginBeforeTheDeadline) {
  for (const auto margin : {std::optional<Millis>(), std::optional<Millis>(20min)}) {
    const Millis expected = margin.value_or(10min);
    const RunOptions options{.acquire = {.ttl = 1h}, .margin = margin};
    const auto ran = run_while_held(client, "job", options,
                                    [&](const std::stop_token& stop, const Lease& lease) {
                                      clock.set(lease.deadline() - expected - 1ms);
                                      EXPECT_FALSE(stop.stop_requested());
                                      clock.advance(1ms);
                                      wait_for(stop);
                                      EXPECT_EQ(lease.remaining(), expected);
                                      EXPECT_NE(lease.state(), LeaseState::lost);
                                    });
    ASSERT_TRUE(ran);
    EXPECT_TRUE(ran->held) << "it stopped in time";
    EXPECT_TRUE(ran->told_to_stop);
  }
}

// On a machine that stalls some are told when the lease is lost already; without a margin all.
TEST_F(RunWhileHeldTest, WorkIsToldBeforeTheDeadlineWhileTheStoreHangs) {
  faults->always(Operation::renew, Fault::hang);
  bool in_time = false;
  for (int i = 0; i < 10 && !in_time; ++i) {
    const RunOptions options{.acquire = {.ttl = 900ms}, .margin = 300ms};
    (void)run_while_held(client, std::to_string(i), options,
                         [&](const std::stop_token& stop, const Lease& lease) {
                           wait_for(stop);
                           in_time = lease.state() != LeaseState::lost;
                         });
  }
  EXPECT_TRUE(in_time);
  faults->let_go();
}

TEST_F(RunWhileHeldTest, LossIsToldAndTheResultIsKept) {
  const auto ran =
      run_while_held(client, "job", [&](const std::stop_token& stop, const Lease& lease) {
        memory.end(lease.request());
        wait_for(stop);
        return 7;
      });
  ASSERT_TRUE(ran);
  EXPECT_FALSE(ran->held);
  EXPECT_TRUE(ran->told_to_stop);
  EXPECT_EQ(ran->result, 7);
}

TEST_F(RunInStandingTimeTest, WorkThatSawNothingIsNotTakenForHeld) {
  const auto ran = run_while_held(client, "job", [&](std::stop_token) { clock.advance(1h); });
  ASSERT_TRUE(ran);
  EXPECT_FALSE(ran->held);
}

TEST_F(RunWhileHeldTest, LockThatAnOperatorTookAwayWasNotHeldToTheEnd) {
  const auto ran = run_while_held(client, "job", [&](std::stop_token, const Lease& lease) {
    memory.take_away(lease.request());  // no renewal comes before the release
  });
  ASSERT_TRUE(ran);
  EXPECT_FALSE(ran->held);
}

TEST_F(RunWhileHeldTest, StopOfTheCallerIsPassedOn) {
  std::stop_source caller;
  const RunOptions options{.acquire = {.stop = caller.get_token()}};
  const auto ran = run_while_held(client, "job", options, [&](const std::stop_token& stop) {
    caller.request_stop();
    wait_for(stop);
  });
  ASSERT_TRUE(ran);
  EXPECT_TRUE(ran->held);
  EXPECT_TRUE(ran->told_to_stop);
  EXPECT_FALSE(ran->not_released) << "it is given back all the same";
  EXPECT_TRUE(is_free("job"));
  EXPECT_EQ(run_while_held(client, "job", options, [](std::stop_token) {}).error().code,
            ErrorCode::cancelled);
}

TEST_F(RunWhileHeldTest, LostRepliesRunTheWorkOnce) {
  faults->next(Operation::acquire, Fault::lose_reply, 2);
  faults->next(Operation::release, Fault::lose_reply);
  int worked = 0;
  const auto ran = run_while_held(client, "job", [&](std::stop_token) { ++worked; });
  ASSERT_TRUE(ran) << to_string(ran.error());
  EXPECT_EQ(worked, 1);
  EXPECT_TRUE(ran->held);
  EXPECT_TRUE(is_free("job"));
}

TEST_F(RunWhileHeldTest, ReleaseThatFailsIsTold) {
  faults->always(Operation::release, Fault::refuse);
  const RunOptions options{.acquire = {.store_timeout = 100ms}};
  const auto ran = run_while_held(client, "job", options, [](std::stop_token) {});
  ASSERT_TRUE(ran);
  EXPECT_TRUE(ran->held);
  ASSERT_TRUE(ran->not_released);
  EXPECT_EQ(ran->not_released->code, ErrorCode::unavailable);
  faults->never(Operation::release);
}

TEST_F(RunWhileHeldTest, MarginThatAHealthyLeaseWouldReachIsRefused) {
  for (const Millis margin : {-1ms, 10'001ms}) {
    const auto ran = run_while_held(client, "job", {.acquire = {.ttl = 30s}, .margin = margin},
                                    [](std::stop_token) { FAIL(); });
    ASSERT_FALSE(ran);
    EXPECT_EQ(ran.error().code, ErrorCode::invalid);
    EXPECT_THAT(ran.error().message, HasSubstr("0 to 10000 ms"));
  }
  EXPECT_EQ(faults->calls(Operation::acquire), 0);
}

TEST_F(RunWhileHeldTest, MarginIsAtMostAThirdOfTheTtlThatTheStoreGives) {
  memory.give_at_most(40s);
  const RunOptions options{.acquire = {.ttl = 24h}, .margin = 8h};
  const auto ran = run_while_held(client, "job", options,
                                  [](std::stop_token, const Lease& lease) { return lease.ttl(); });
  ASSERT_TRUE(ran) << to_string(ran.error());
  EXPECT_EQ(ran->result, 40s);
  EXPECT_FALSE(ran->told_to_stop);
}

class RunWithoutTokensTest : public LockPatternTest {
 protected:
  RunWithoutTokensTest() : LockPatternTest(system_clock(), Guarantee::efficiency) {}
};

TEST_F(RunWithoutTokensTest, FencedWorkIsRefused) {
  const auto ran =
      run_while_held_fenced(client, "job", [](std::stop_token, const FencedLease&) { FAIL(); });
  ASSERT_FALSE(ran);
  EXPECT_EQ(ran.error().code, ErrorCode::unsafe_for_correctness);
}

}  // namespace
}  // namespace leasehold
