// Idempotency keys and compare-and-set in a real redis-server.
#include <gmock/gmock.h>

#include <atomic>
#include <future>
#include <thread>
#include <vector>

#include "adapters/redis/rig/server.h"
#include "leasehold/redis/once.h"
#include "leasehold/redis/values.h"
#include "rig/tcp_proxy.h"
#include "testing/once_conformance.h"
#include "testing/results.h"
#include "testing/values_conformance.h"

namespace leasehold::redis {
namespace {

using namespace std::chrono_literals;
using namespace leasehold::testing;
using ::testing::HasSubstr;

leasehold::rig::RedisServer& server() {
  static leasehold::rig::RedisServer shared;
  return shared;
}

// Runs, and is empty.
void make_ready() {
  if (!server().process().runs()) server().process().start();
  server().cli({"FLUSHALL"});
}

class RedisWays : public ::testing::Test {
 protected:
  RedisWays() { make_ready(); }
  static std::string cli(std::vector<std::string> words) { return server().cli(std::move(words)); }
};

// ---- once ----------------------------------------------------------------------------------

// Counts the effects here: nothing takes them back.
class RedisOnceUnderTest final : public OnceUnderTest {
 public:
  RedisOnceUnderTest() { make_ready(); }
  std::unique_ptr<OnceUser> connect() override { return std::make_unique<User>(*this); }
  int effects() override { return effects_; }
  int keys() override { return std::stoi(server().cli({"DBSIZE"})); }

 private:
  class User final : public OnceUser {
   public:
    explicit User(RedisOnceUnderTest& under) : under_(under) {}
    Result<OnceResult> run(std::string_view key, std::string_view parameters, const SiteWork& work,
                           const OnceOptions& options) override {
      const auto act = [this] { ++under_.effects_; };
      return once_.run(
          key, parameters, [&] { return work({.act = act, .sql = {}, .enter = {}, .send = {}}); },
          options);
    }

   private:
    RedisOnceUnderTest& under_;
    const Once once_ = Once::open(server().url()).value();
  };

  std::atomic<int> effects_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Redis, OnceConformance, ::testing::Values(MakeOnce([] {
                           return std::make_unique<RedisOnceUnderTest>();
                         })));

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

TEST_F(RedisOnce, ResultIsKeptForADay) {
  ASSERT_TRUE(once.run("order-7", "amount=3", work("receipt")));
  EXPECT_GT(std::stoll(cli({"PTTL", "leasehold:result:order-7"})), 23 * 3600 * 1000);
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

TEST_F(RedisOnce, KeyOfAnotherFormatIsRefusedAndKept) {
  const std::string key = "leasehold:result:order-7";
  ASSERT_TRUE(once.run("order-7", "", work("receipt")));
  for (const auto& [format, words] :
       {std::pair("2", "use a program that is at least as new"),
        std::pair("", "to begin afresh, delete the key 'leasehold:result:order-7'")}) {
    if (*format != '\0') {
      cli({"HSET", key, "format", format});
    } else {
      cli({"HDEL", key, "format"});  // as the first builds had it
    }
    const auto refused = once.run("order-7", "", work("second"));
    ASSERT_TRUE(bad(refused, ErrorCode::unavailable));
    EXPECT_THAT(refused.error().message, HasSubstr(words));
    EXPECT_EQ(cli({"HGET", key, "result"}), "receipt");
  }
  EXPECT_EQ(ran, 1);
}

TEST_F(RedisOnce, WrongInputIsInvalid) {
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
  leasehold::rig::TcpProxy proxy(server().port());
  const Once far = Once::open("redis://" + proxy.address()).value();
  const auto of_the_key = [](std::string_view request) {
    return request.find("leasehold:result:k") != std::string_view::npos;
  };
  proxy.arm(leasehold::rig::WireFault::lose_reply, of_the_key);
  auto unlucky = std::async(std::launch::async, [&] { return far.run("k", "", work("r")); });
  ASSERT_TRUE(proxy.wait_for_fault(60s));
  proxy.arm(leasehold::rig::WireFault::cut_after, of_the_key);
  proxy.cut();
  EXPECT_TRUE(bad(unlucky.get(), ErrorCode::unavailable));
  EXPECT_EQ(ran, 1) << "only the other";
  EXPECT_EQ(cli({"EXISTS", "leasehold:result:k"}), "0");
}

// ---- compare and set -----------------------------------------------------------------------

class RedisValueUnderTest final : public ValueUnderTest {
 public:
  RedisValueUnderTest() { make_ready(); }
  std::unique_ptr<ValueUser> connect() override {
    return std::make_unique<CellUser<Cell>>(
        Values::open(server().url()).value().at("stock").value());
  }
  std::string value() override { return server().cli({"GET", "stock"}); }
  void put(const std::string& value) override { server().cli({"SET", "stock", value}); }
  bool has_versions() override { return false; }
};

INSTANTIATE_TEST_SUITE_P(Redis, ValuesConformance, ::testing::Values(MakeValue([] {
                           return std::make_unique<RedisValueUnderTest>();
                         })));

class RedisValues : public RedisWays {
 protected:
  Cell stock() const { return values.at("stock").value(); }
  Values values = Values::open(server().url()).value();
};

Result<std::string> one_less(const std::optional<std::string>& seen) {
  return std::to_string(std::stoi(seen.value_or("100")) - 1);
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

TEST_F(RedisValues, WrongKeysAreTold) {
  EXPECT_TRUE(bad(values.at(""), ErrorCode::invalid));
  EXPECT_TRUE(bad(values.at("leasehold:store"), ErrorCode::invalid));
  cli({"LPUSH", "list", "x"});
  EXPECT_TRUE(bad(compare_and_set(values.at("list").value(), one_less), ErrorCode::unavailable));
}

}  // namespace
}  // namespace leasehold::redis
