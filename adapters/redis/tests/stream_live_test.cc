// Messages of an outbox into a Redis stream.
#include <gmock/gmock.h>

#include "adapters/redis/rig/server.h"
#include "leasehold/outbox.h"
#include "leasehold/redis/adapter.h"

namespace leasehold::redis {
namespace {

using leasehold::rig::RedisServer;
using ::testing::HasSubstr;

Result<std::unique_ptr<OutboxTarget>> open(const std::string& url) {
  return adapters().front().offers.open<OutboxTarget>(Url::parse(url).value());
}

const Token& token() {
  static const Token one =
      Token::parse("7", std::string(32, 'a') + "/relay", std::string(32, '1')).value();
  return one;
}

Status deliver(OutboxTarget& target, const OutboxMessage& message) {
  return target.deliver(message, {token(), {BootClock::now() + std::chrono::seconds(10), {}}});
}

TEST(RedisStream, MessageIsOneEntryWithItsIdempotencyKey) {
  RedisServer server;
  auto target = open(server.url() + "/0?stream=events");
  ASSERT_TRUE(target);
  ASSERT_TRUE(deliver(**target, {12, "order/1", "paid", "{\"a\": 1}", "payment/7731", 0}));
  ASSERT_TRUE(deliver(**target, {13, "order/1", "paid", "second", "payment/7732", 0}));
  EXPECT_EQ(server.cli({"XLEN", "events"}), "2");
  const std::string first = server.cli({"XRANGE", "events", "-", "+", "COUNT", "1"});
  EXPECT_THAT(first, HasSubstr("id\n12\nkey\norder/1\ntopic\npaid\nidempotency_key\npayment/7731\n"
                               "token\n7\npayload\n{\"a\": 1}"));
}

TEST(RedisStream, ServerThatIsAwayIsNotTheMessagesFault) {
  RedisServer server;
  auto target = open(server.url() + "/0?stream=events");
  ASSERT_TRUE(target);
  server.process().kill();
  const Status away = deliver(**target, {12, "k", "t", "p", "i", 0});
  ASSERT_FALSE(away);
  EXPECT_EQ(away.error().code, ErrorCode::unavailable);
  server.process().start();
  EXPECT_TRUE(deliver(**target, {12, "k", "t", "p", "i", 0}));
}

TEST(RedisStream, UrlMustNameAStream) {
  for (const char* url :
       {"redis://localhost", "redis://localhost?stream=", "redis://localhost?stream=leasehold:x",
        "redis://localhost?stream=x&y=1"}) {
    const auto target = open(url);
    ASSERT_FALSE(target) << url;
    EXPECT_EQ(target.error().code, ErrorCode::invalid) << url;
  }
}

}  // namespace
}  // namespace leasehold::redis
