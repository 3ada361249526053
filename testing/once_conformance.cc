#include "testing/once_conformance.h"

#include <gmock/gmock.h>

#include <atomic>
#include <future>
#include <latch>
#include <stdexcept>
#include <thread>
#include <vector>

#include "testing/results.h"
#include "testing/tokens.h"

namespace leasehold::testing {

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(OnceConformance);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(TransactionalOnceConformance);

namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

Result<std::string> act_and_fail(const WorkSite& site) {
  site.act();
  return fail(ErrorCode::lost, "no time");
}

Result<std::string> act_and_throw(const WorkSite& site) {
  site.act();
  throw std::runtime_error("work");
}

Result<std::string> only_fail(const WorkSite&) {
  return fail(ErrorCode::lost, "no time");
}

}  // namespace

SiteWork act(std::string result) {
  return [result](const WorkSite& site) -> Result<std::string> {
    site.act();
    return result;
  };
}

void OnceConformance::SetUp() {
  under_ = GetParam()();
  user_ = under_->connect();
}

std::pair<Result<OnceResult>, Result<OnceResult>> OnceConformance::run_beside_a_repeat(
    const SiteWork& work) {
  const auto other = under_->connect();
  std::future<Result<OnceResult>> repeat;
  auto first = run("k", "p", [&](const WorkSite& site) {
    repeat = std::async(std::launch::async, [&] {
      return other->run("k", "p", act("second"), {.wait = Millis::max()});
    });
    under_->await_waiter();
    return work(site);
  });
  return {std::move(first), repeat.get()};
}

void TransactionalOnceConformance::SetUp() {
  under_ = GetParam()();
  user_ = under_->connect_user();
}

// ---- every Once ----------------------------------------------------------------------------

TEST_P(OnceConformance, RepeatReturnsTheStoredResultWithoutWorking) {
  const auto first = run("order-7", "amount=3", act("receipt"));
  ASSERT_TRUE(good(first));
  EXPECT_EQ(first->result, "receipt");
  EXPECT_FALSE(first->replayed);
  const auto second = run("order-7", "amount=3", act("another"));
  ASSERT_TRUE(good(second));
  EXPECT_EQ(second->result, "receipt");
  EXPECT_TRUE(second->replayed);
  EXPECT_EQ(under_->effects(), 1);
}

TEST_P(OnceConformance, KeyWithOtherParametersIsInvalidAndNothingRuns) {
  ASSERT_TRUE(good(run("k", "amount=3", act(""))));
  for (const std::string parameters : {"amount=4", "", "amount=3 ", "AMOUNT=3"}) {
    const auto other = run("k", parameters, act(""));
    ASSERT_TRUE(bad(other, ErrorCode::invalid)) << parameters;
    EXPECT_THAT(other.error().message, HasSubstr("other parameters"));
  }
  EXPECT_EQ(under_->effects(), 1);
}

TEST_P(OnceConformance, AnyBytesAreExact) {
  const std::string odd = any_bytes();
  ASSERT_TRUE(good(run("k", odd, act(odd))));
  EXPECT_EQ(run("k", odd, act("")).value().result, odd);
  EXPECT_TRUE(bad(run("k", "a", act("")), ErrorCode::invalid));
  ASSERT_TRUE(good(run("empty", std::string_view(), act(""))));
  EXPECT_TRUE(run("empty", "", act("")).value().replayed);
}

TEST_P(OnceConformance, FailureOrExceptionGivesTheKeyBack) {
  EXPECT_TRUE(bad(run("k", "", only_fail), ErrorCode::lost));
  EXPECT_EQ(under_->keys(), 0);
  EXPECT_THROW((void)run("k", "", act_and_throw), std::runtime_error);
  EXPECT_EQ(under_->keys(), 0);
  EXPECT_FALSE(run("k", "", act("r")).value().replayed);
}

TEST_P(OnceConformance, LimitsAreTold) {
  EXPECT_TRUE(bad(run("", "", act("")), ErrorCode::invalid));
  EXPECT_TRUE(bad(run(std::string(513, 'k'), "", act("")), ErrorCode::invalid));
  EXPECT_TRUE(bad(run("a\nb", "", act("")), ErrorCode::invalid));
  EXPECT_TRUE(bad(run("k", std::string(kMaxOnceParameters + 1, 'p'), act("")), ErrorCode::invalid));
  EXPECT_EQ(under_->effects(), 0);
  EXPECT_TRUE(bad(run("k", "", act(std::string(kMaxOnceResult + 1, 'r'))), ErrorCode::invalid));
  EXPECT_EQ(under_->keys(), 0);
  EXPECT_TRUE(good(run(std::string(512, 'k'), std::string(kMaxOnceParameters, 'p'),
                       act(std::string(kMaxOnceResult, 'r')))));
}

TEST_P(OnceConformance, RepeatDuringTheWorkIsBusyAndDoesNotRun) {
  const auto other = under_->connect();
  const auto first = run("k", "", [&](const WorkSite& site) {
    EXPECT_TRUE(bad(other->run("k", "", act("second"), {.wait = 0ms}), ErrorCode::busy));
    EXPECT_TRUE(bad(other->run("k", "", act("second"), {.wait = 20ms}), ErrorCode::timeout));
    return act("first")(site);
  });
  ASSERT_TRUE(good(first));
  EXPECT_EQ(under_->effects(), 1);
}

TEST_P(OnceConformance, StopEndsTheWait) {
  const auto other = under_->connect();
  std::stop_source source;
  const auto first = run("k", "", [&](const WorkSite& site) {
    const std::jthread stopper([&] { source.request_stop(); });
    EXPECT_TRUE(
        bad(other->run("k", "", act("second"), {.wait = Millis::max(), .stop = source.get_token()}),
            ErrorCode::cancelled));
    return act("first")(site);
  });
  ASSERT_TRUE(good(first));
}

TEST_P(OnceConformance, ConcurrentRepeatWaitsAndGetsTheResult) {
  const auto [first, answer] = run_beside_a_repeat(act("first"));
  ASSERT_TRUE(good(first));
  ASSERT_TRUE(good(answer));
  EXPECT_TRUE(answer->replayed);
  EXPECT_EQ(answer->result, "first");
  EXPECT_EQ(under_->effects(), 1);
}

TEST_P(OnceConformance, WhoeverWaitsForAFailedWorkDoesItThen) {
  const auto [first, answer] = run_beside_a_repeat(only_fail);
  EXPECT_TRUE(bad(first, ErrorCode::lost));
  EXPECT_EQ(answer.value().result, "second");
  EXPECT_EQ(under_->effects(), 1);
}

TEST_P(OnceConformance, ManyThreadsRunEachKeyOnce) {
  constexpr int threads = 4;
  constexpr int keys_each = 25;
  std::latch start(threads);
  std::atomic<int> ran = 0;
  std::atomic<int> errors = 0;
  {
    std::vector<std::jthread> workers;
    for (int i = 0; i < threads; ++i) {
      workers.emplace_back([&] {
        const auto mine = under_->connect();
        start.arrive_and_wait();
        for (int key = 0; key < keys_each; ++key) {
          const auto answer =
              mine->run("key-" + std::to_string(key), "", act("r"), {.wait = Millis::max()});
          if (!answer) ++errors;
          if (answer && !answer->replayed) ++ran;
        }
      });
    }
  }
  EXPECT_EQ(errors, 0);
  EXPECT_EQ(ran, keys_each);
  EXPECT_EQ(under_->effects(), keys_each);
}

// ---- with the work in one transaction ------------------------------------------------------

TEST_P(TransactionalOnceConformance, NothingOfAWorkThatFailsStays) {
  EXPECT_TRUE(bad(user_->run("k", "", act_and_fail), ErrorCode::lost));
  EXPECT_THROW((void)user_->run("k", "", act_and_throw), std::runtime_error);
  EXPECT_TRUE(
      bad(user_->run("k", "", act(std::string(kMaxOnceResult + 1, 'r'))), ErrorCode::invalid));
  EXPECT_EQ(under_->effects(), 0);
  EXPECT_EQ(under_->keys(), 0);
  EXPECT_EQ(user_->sql("BEGIN; ROLLBACK"), "") << "no transaction is left open";
}

TEST_P(TransactionalOnceConformance, WorkThatEndsTheTransactionStoresNothing) {
  const auto ended = user_->run("k", "", [](const WorkSite& site) -> Result<std::string> {
    (void)site.sql("COMMIT");
    return "x";
  });
  EXPECT_TRUE(bad(ended, ErrorCode::invalid));
  EXPECT_EQ(under_->keys(), 0);
}

TEST_P(TransactionalOnceConformance, InsideATransactionIsInvalid) {
  ASSERT_EQ(user_->sql("BEGIN"), "");
  EXPECT_TRUE(bad(user_->run("k", "", act("")), ErrorCode::invalid));
  EXPECT_TRUE(bad(user_->forget_older_than(0s), ErrorCode::invalid));
  ASSERT_EQ(user_->sql("ROLLBACK"), "");
}

TEST_P(TransactionalOnceConformance, FenceMayBeEnteredInTheWork) {
  const auto pay = [&](const Token& token) {
    return user_->run("k" + std::to_string(token.number.value()), "",
                      [&](const WorkSite& site) -> Result<std::string> {
                        if (auto ok = site.enter(token); !ok) return fail(ok.error());
                        return act("r")(site);
                      });
  };
  EXPECT_TRUE(good(pay(token_of(34, '2'))));
  EXPECT_TRUE(bad(pay(token_of(33, '1')), ErrorCode::fenced_out));
  EXPECT_EQ(under_->effects(), 1);
  EXPECT_EQ(under_->keys(), 1);
}

TEST_P(TransactionalOnceConformance, ForgetsOldResultsOnly) {
  ASSERT_TRUE(good(user_->run("old", "", act(""))));
  ASSERT_TRUE(good(user_->run("new", "", act(""))));
  under_->make_old("old");
  EXPECT_EQ(user_->forget_older_than(3600s).value(), 1);
  EXPECT_TRUE(user_->run("new", "", act("")).value().replayed);
  EXPECT_FALSE(user_->run("old", "", act("")).value().replayed);
}

}  // namespace leasehold::testing
