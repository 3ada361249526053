// leasehold outbox from PostgreSQL into a Redis stream, and a serial queue in Redis.
#include <nlohmann/json.hpp>

#include "adapters/postgres/rig/server.h"
#include "adapters/redis/rig/server.h"
#include "cli/tests/cli_fixture.h"

namespace leasehold::cli {
namespace {

using leasehold::rig::PostgresServer;
using leasehold::rig::RedisServer;

class PostgresOutboxTest : public CliTest {
 protected:
  PostgresOutboxTest() { EXPECT_EQ(leasehold({"outbox", "install", url()}).status, 0); }
  ~PostgresOutboxTest() override { server().drop_database(database_); }

  static PostgresServer& server() {
    static PostgresServer running;
    return running;
  }
  std::string url() const { return server().url(database_); }
  void put(const std::string& key, const std::string& payload) const {
    server().psql("SELECT leasehold_outbox.put('" + key + "', 'paid', '" + payload + "', 'id-" +
                      payload + "')",
                  database_);
  }
  Finished relay(Words more) const {
    Words words = {"outbox", "relay", url(), "--until-empty", "--pause", "1ms", "--poll", "5ms"};
    words.insert(words.end(), more.begin(), more.end());
    return leasehold(words);
  }

  const std::string database_ = server().create_database();
};

TEST_F(PostgresOutboxTest, KeepsTheFenceThatItNeeds) {
  EXPECT_EQ(leasehold({"fence", "remove", url(), "--force"}).status, 64);
  put("a", "one");
  EXPECT_EQ(relay({"-c", "true"}).status, 0);
  server().psql("DROP SCHEMA leasehold_outbox CASCADE", database_);
  EXPECT_EQ(leasehold({"fence", "remove", url(), "--force"}).status, 0);
}

TEST_F(PostgresOutboxTest, GoesIntoARedisStream) {
  RedisServer redis;
  put("a", "one");
  put("a", "two");
  const Finished done = relay({"--to", redis.url() + "/0?stream=events"});
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_EQ(redis.cli({"XLEN", "events"}), "2");
  EXPECT_THAT(redis.cli({"XRANGE", "events", "-", "+"}),
              ::testing::ContainsRegex("id-one\n(.*\n)*one\n(.*\n)*id-two\n(.*\n)*two"));
}

TEST_F(PostgresOutboxTest, LockIsInTheSameDatabaseAndTheFenceIsEntered) {
  put("a", "one");
  EXPECT_EQ(relay({"-c", "true"}).status, 0);
  put("a", "two");
  EXPECT_EQ(relay({"-c", "true"}).status, 0);
  EXPECT_THAT(leasehold({"ls", "--store", url()}).out, HasSubstr("leasehold/outbox"));
  const auto marks =
      nlohmann::json::parse(leasehold({"fence", "show", url(), "--json"}).out).at("fences");
  EXPECT_EQ(marks.at(0).at("resource"), "leasehold/outbox");
  EXPECT_EQ(marks.at(0).at("token"), 2);
}

TEST_F(PostgresOutboxTest, EfficiencyIsNotEnoughForTheRelay) {
  RedisServer redis;
  put("a", "one");
  const Finished done = relay({"-c", "true", "--lock-store", redis.url()});
  EXPECT_EQ(done.status, 77);
  EXPECT_THAT(done.err, HasSubstr("Redis answers before"));
}

using RedisSerialTest = CliTest;

TEST_F(RedisSerialTest, QueuesAreWorkedToo) {
  const RedisServer redis;
  const std::string url = redis.url();
  for (const char* payload : {"ship", "bill"}) {
    const Finished pushed =
        finish({LEASEHOLD_PROGRAM, "serial", "push", url, "orders", "order/1"}, payload);
    EXPECT_EQ(pushed.status, 0) << pushed.err;
  }
  EXPECT_THAT(leasehold({"serial", "show", url, "orders", "--json"}).out,
              HasSubstr("\"waiting_entities\": 1"));
  const Finished done = leasehold(
      {"serial", "work", url, "orders", "--until-empty", "-c", "(cat; echo) >> " + path("log")});
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_EQ(read("log"), "ship\nbill\n");
  EXPECT_EQ(leasehold({"serial", "show", url, "orders"}).out, "queue 'orders': 0 entities wait\n");
}

}  // namespace
}  // namespace leasehold::cli
