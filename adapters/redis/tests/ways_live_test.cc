// Idempotency keys and compare-and-set in a real redis-server.
#include <gmock/gmock.h>

#include <atomic>
#include <future>
#include <latch>
#include <stdexcept>
#include <thread>
#include <vector>

#include "leasehold/redis/once.h"
#include "leasehold/redis/values.h"
#include "testing/servers/redis.h"
#include "testing/tcp_proxy.h"

namespace leasehold::redis {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

leasehold::testing::RedisServer& server() {
  static leasehold::testing::RedisServer shared;
  return shared;
}

template <class T>
::testing::AssertionResult bad(const Result<T>& result, ErrorCode code) {
  if (result) return ::testing::AssertionFailure() << "it succeeded";
  if (result.error().code == code) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << to_string(result.error());
}

class RedisWays : public ::testing::Test {
 protected:
  RedisWays() {
    if (!server().process().runs()) server().process().start();
    server().cli({"FLUSHALL"});
  }
  static std::string cli(std::vector<std::string> words) { return server().cli(std::move(words)); }
};

// ---- once ----------------------------------------------------------------------------------

class RedisOnce : public RedisWays {
 protected:
  auto work(std::string result) {
    return [this, result]() -> Result<std::string> {
      ++ran;
      return result;
    };
  }
  Once once = Once::open(server().url()).value();
  std::atomic<int> ran = 0;
};

TEST_F(RedisOnce, RepeatReturnsTheStoredResultWithoutWorking) {
  const auto first = once.run("order-7", "amount=3", work("receipt"));
  ASSERT_TRUE(first);
  EXPECT_FALSE(first->replayed);
  const auto second = once.run("order-7", "amount=3", work("another"));
  ASSERT_TRUE(second);
  EXPECT_TRUE(second->replayed);
  EXPECT_EQ(second->result, "receipt");
  EXPECT_EQ(ran, 1);
  EXPECT_GT(std::stoll(cli({"PTTL", "leasehold:result:order-7"})), 23 * 3600 * 1000);
}

TEST_F(RedisOnce, KeyWithOtherParametersIsInvalid) {
  ASSERT_TRUE(once.run("k", "amount=3", work("")));
  const auto other = once.run("k", "amount=4", work(""));
  ASSERT_TRUE(bad(other, ErrorCode::invalid));
  EXPECT_THAT(other.error().message, HasSubstr("other parameters"));
  EXPECT_EQ(ran, 1);
}

TEST_F(RedisOnce, AnyBytesAreExact) {
  const std::string odd("a\0b\r\n\xff", 6);
  ASSERT_TRUE(once.run("k", odd, work(odd)));
  EXPECT_EQ(once.run("k", odd, work("")).value().result, odd);
  ASSERT_TRUE(once.run("empty", "", work("")));
  EXPECT_TRUE(once.run("empty", "", work("x")).value().replayed);
}

TEST_F(RedisOnce, FailureOrExceptionGivesTheKeyBack) {
  EXPECT_TRUE(bad(
      once.run("k", "", []() -> Result<std::string> { return fail(ErrorCode::lost, "no time"); }),
      ErrorCode::lost));
  EXPECT_EQ(cli({"EXISTS", "leasehold:result:k"}), "0");
  const auto throws = [&] {
    (void)once.run("k", "", []() -> Result<std::string> { throw std::runtime_error("work"); });
  };
  EXPECT_THROW(throws(), std::runtime_error);
  EXPECT_FALSE(once.run("k", "", work("r")).value().replayed);
}

TEST_F(RedisOnce, RepeatDuringTheWorkIsBusyOrWaits) {
  std::future<Result<OnceResult>> waiting;
  const auto first = once.run("k", "", [&]() -> Result<std::string> {
    EXPECT_TRUE(bad(once.run("k", "", work("second"), {.wait = 0ms}), ErrorCode::busy));
    EXPECT_TRUE(bad(once.run("k", "", work("second"), {.wait = 20ms}), ErrorCode::timeout));
    waiting = std::async(std::launch::async,
                         [&] { return once.run("k", "", work("second"), {.wait = 60s}); });
    return "first";
  });
  ASSERT_TRUE(first);
  EXPECT_EQ(waiting.get().value().result, "first");
  EXPECT_EQ(ran, 0);
}

TEST_F(RedisOnce, StopEndsTheWait) {
  std::stop_source source;
  const auto first = once.run("k", "", [&]() -> Result<std::string> {
    const std::jthread stopper([&] { source.request_stop(); });
    EXPECT_TRUE(bad(once.run("k", "", work(""), {.wait = 1h, .stop = source.get_token()}),
                    ErrorCode::cancelled));
    return "first";
  });
  ASSERT_TRUE(first);
}

TEST_F(RedisOnce, ManyThreadsRunEachKeyOnce) {
  std::latch start(4);
  std::atomic<int> errors = 0;
  {
    std::vector<std::jthread> workers;
    for (int i = 0; i < 4; ++i) {
      workers.emplace_back([&] {
        start.arrive_and_wait();
        for (int key = 0; key < 25; ++key) {
          if (!once.run("key-" + std::to_string(key), "", work("r"), {.wait = 60s})) ++errors;
        }
      });
    }
  }
  EXPECT_EQ(errors, 0);
  EXPECT_EQ(ran, 25);
}

// What the header warns of: the key is free again, and the work runs twice.
TEST_F(RedisOnce, WorkThatOutlivesItsTimeIsToldThatItWasDoneTwice) {
  const Once hasty = Once::open(server().url(), {.working_for = 1ms}).value();
  const auto slow = hasty.run("k", "", [&]() -> Result<std::string> {
    while (cli({"EXISTS", "leasehold:result:k"}) != "0") std::this_thread::sleep_for(1ms);
    EXPECT_FALSE(once.run("k", "", work("second")).value().replayed);
    return "first";
  });
  EXPECT_TRUE(bad(slow, ErrorCode::lost));
  EXPECT_EQ(once.run("k", "", work("third")).value().result, "second");
}

TEST_F(RedisOnce, ResultThatCannotBeStoredIsTold) {
  const auto done = once.run("k", "", [&]() -> Result<std::string> {
    server().process().kill();
    return "r";
  });
  ASSERT_TRUE(bad(done, ErrorCode::outcome_unknown));
  EXPECT_THAT(done.error().message, HasSubstr("the work was done"));
  EXPECT_TRUE(bad(once.run("l", "", work("")), ErrorCode::unavailable));
  EXPECT_EQ(ran, 0);
}

TEST_F(RedisOnce, WrongInputIsInvalid) {
  EXPECT_TRUE(bad(once.run("", "", work("")), ErrorCode::invalid));
  EXPECT_TRUE(
      bad(once.run("k", std::string(kMaxOnceParameters + 1, 'p'), work("")), ErrorCode::invalid));
  EXPECT_TRUE(
      bad(once.run("k", "", work(std::string(kMaxOnceResult + 1, 'r'))), ErrorCode::invalid));
  EXPECT_TRUE(bad(Once::open("postgres://localhost/x"), ErrorCode::invalid));
  EXPECT_TRUE(bad(Once::open(server().url(), {.keep_for = 0ms}), ErrorCode::invalid));
  EXPECT_TRUE(bad(Once::open("redis://127.0.0.1:1"), ErrorCode::unavailable));
}

TEST_F(RedisOnce, LifetimesHaveAnEnd) {
  const Millis longest = 24h * 3650;
  for (const Millis much : {longest + 1ms, Millis::max()}) {
    EXPECT_TRUE(bad(Once::open(server().url(), {.working_for = much}), ErrorCode::invalid));
    EXPECT_TRUE(bad(Once::open(server().url(), {.keep_for = much}), ErrorCode::invalid));
  }
  const auto patient = Once::open(server().url(), {.working_for = longest, .keep_for = longest});
  ASSERT_TRUE(patient);
  EXPECT_TRUE(patient->run("k", "", work("r")));
}

TEST_F(RedisOnce, KeyWhoseRepliesWereLostIsGivenBack) {
  ASSERT_TRUE(once.run("other", "", work("r"))) << "so that the server knows the script";
  leasehold::testing::TcpProxy proxy(server().port());
  const Once far = Once::open("redis://" + proxy.address()).value();
  const auto of_the_key = [](std::string_view request) {
    return request.find("leasehold:result:k") != std::string_view::npos;
  };
  proxy.arm(leasehold::testing::WireFault::lose_reply, of_the_key);
  auto unlucky = std::async(std::launch::async, [&] { return far.run("k", "", work("r")); });
  ASSERT_TRUE(proxy.wait_for_fault(60s));
  proxy.arm(leasehold::testing::WireFault::cut_after, of_the_key);
  proxy.cut();
  EXPECT_TRUE(bad(unlucky.get(), ErrorCode::unavailable));
  EXPECT_EQ(ran, 1) << "only the other";
  EXPECT_EQ(cli({"EXISTS", "leasehold:result:k"}), "0");
}

// ---- compare and set -----------------------------------------------------------------------

class RedisValues : public RedisWays {
 protected:
  Cell stock() const { return values.at("stock").value(); }
  Values values = Values::open(server().url()).value();
};

Result<std::string> one_less(const std::optional<std::string>& seen) {
  return std::to_string(std::stoi(seen.value_or("100")) - 1);
}

TEST_F(RedisValues, WritesAPlainKey) {
  const auto changed = compare_and_set(stock(), one_less);
  ASSERT_TRUE(changed);
  EXPECT_EQ(changed->value, "99");
  EXPECT_EQ(changed->conflicts, 0);
  EXPECT_EQ(cli({"GET", "stock"}), "99");
}

TEST_F(RedisValues, WriteOfAnotherProgramInBetweenIsNotLost) {
  int calls = 0;
  const auto changed =
      compare_and_set(stock(), [&](const std::optional<std::string>& seen) -> Result<std::string> {
        if (++calls == 1) cli({"SET", "stock", "50"});
        return one_less(seen);
      });
  ASSERT_TRUE(changed);
  EXPECT_EQ(changed->conflicts, 1);
  EXPECT_EQ(cli({"GET", "stock"}), "49");
}

TEST_F(RedisValues, KeyThatComesOrGoesIsAConflict) {
  const auto missing = stock().read().value();
  EXPECT_EQ(missing.value, std::nullopt);
  cli({"SET", "stock", ""});
  EXPECT_FALSE(stock().write(missing, "1").value()) << "empty is not missing";
  const auto empty = stock().read().value();
  cli({"DEL", "stock"});
  EXPECT_FALSE(stock().write(empty, "1").value());
  EXPECT_EQ(cli({"EXISTS", "stock"}), "0");
}

TEST_F(RedisValues, TimeToLiveStays) {
  cli({"SET", "stock", "7", "EX", "1000"});
  ASSERT_TRUE(compare_and_set(stock(), one_less));
  EXPECT_GT(std::stoll(cli({"TTL", "stock"})), 900);
  EXPECT_EQ(cli({"GET", "stock"}), "6");
}

TEST_F(RedisValues, RacingThreadsLoseNothing) {
  std::latch start(4);
  std::atomic<int> done = 0;
  {
    std::vector<std::jthread> workers;
    for (int i = 0; i < 4; ++i) {
      workers.emplace_back([&] {
        start.arrive_and_wait();
        for (int n = 0; n < 20; ++n) {
          if (compare_and_set(stock(), one_less, {.attempts = 10'000, .wait = 60s})) ++done;
        }
      });
    }
  }
  EXPECT_EQ(done, 80);
  EXPECT_EQ(cli({"GET", "stock"}), "20");
}

TEST_F(RedisValues, WrongKeysAreTold) {
  EXPECT_TRUE(bad(values.at(""), ErrorCode::invalid));
  EXPECT_TRUE(bad(values.at("leasehold:store"), ErrorCode::invalid));
  cli({"LPUSH", "list", "x"});
  EXPECT_TRUE(bad(compare_and_set(values.at("list").value(), one_less), ErrorCode::unavailable));
}

}  // namespace
}  // namespace leasehold::redis
