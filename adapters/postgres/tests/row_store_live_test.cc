// The store of lease rows, on a real server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "postgres_under_test.h"

namespace leasehold::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

INSTANTIATE_TEST_SUITE_P(Postgres, StoreConformance,
                         ::testing::Values(StoreCase{
                             "rows",
                             [] { return std::make_unique<PostgresUnderTest>("mode=rows"); }}),
                         name_of_store_case);

class RowStoreTest : public ::testing::Test {
 protected:
  std::string psql(const std::string& sql) { return shared_server().psql(sql, server.database()); }

  PostgresUnderTest server{"mode=rows"};
};

TEST_F(RowStoreTest, UncontendedAcquireAndReleaseAreOneRoundTripEach) {
  RawStore raw(server.open_through_proxies());
  const RequestId first = new_request();
  ASSERT_TRUE(raw.acquire(first));  // connects
  raw.release(first);
  const std::size_t before = server.proxy().round_trips();
  const RequestId request = new_request();
  ASSERT_TRUE(raw.acquire(request));
  EXPECT_EQ(server.proxy().round_trips(), before + 1);
  EXPECT_EQ(raw.release(request), ReleaseReply::released);
  EXPECT_EQ(server.proxy().round_trips(), before + 2);
}

TEST_F(RowStoreTest, ReleaseWakesOneOfAHundredWaiters) {
  RawStore holder(server.open());
  RawStore waiters(server.open());
  const RequestId held = new_request();
  ASSERT_TRUE(holder.acquire(held));
  std::vector<RequestId> queue;
  for (int i = 0; i < 100; ++i) {
    queue.push_back(new_request());
    ASSERT_TRUE(std::holds_alternative<Queued>(waiters.acquire(queue.back(), 30s, true).value()));
  }
  ASSERT_EQ(waiters.events.nudges(), 0u);
  EXPECT_EQ(holder.release(held), ReleaseReply::released);
  EXPECT_TRUE(waiters.events.wait_for_nudge(queue.front(), 30s));
  // A second notification would have come in the same order, before the answer to this one.
  ASSERT_TRUE(std::holds_alternative<Granted>(waiters.acquire(queue.front(), 30s, true).value()));
  EXPECT_EQ(waiters.events.nudges(), 1u);
}

TEST_F(RowStoreTest, ListenerThatLostItsConnectionAsksForAllAndListensAgain) {
  RawStore holder(server.open());
  RawStore waiter(server.open_through_proxies());
  const RequestId held = new_request();
  const RequestId queued = new_request();
  ASSERT_TRUE(holder.acquire(held));
  ASSERT_TRUE(std::holds_alternative<Queued>(waiter.acquire(queued, 30s, true).value()));
  server.proxy().cut();
  EXPECT_TRUE(waiter.events.wait_for_nudge(queued, 30s)) << "it may have missed its turn";
  // The connection of its calls was cut too, and one of them may have to tell so.
  auto again = waiter.acquire(queued, 30s, true);
  if (!again) again = waiter.acquire(queued, 30s, true);
  ASSERT_TRUE(again) << to_string(again.error());
  ASSERT_TRUE(std::holds_alternative<Queued>(*again));
  EXPECT_EQ(holder.inspect()->waiters.size(), 1u);
}

TEST_F(RowStoreTest, TokensAreCommittedDurablyWhateverTheRoleSays) {
  psql("ALTER DATABASE " + server.database() + " SET synchronous_commit = off");
  RawStore raw(server.open());
  ASSERT_TRUE(raw.acquire(new_request()));
  // With asynchronous commits a kill right after the answer takes them back.
  for (int life = 0; life < 3; ++life) {
    RawStore again(server.open());
    const auto status = again.inspect();
    ASSERT_TRUE(status && status->last_token);
    const std::int64_t last = status->last_token->value();
    ASSERT_TRUE(again.force_release(status->holder->request));
    const std::int64_t token = again.token(new_request());
    EXPECT_GT(token, last);
    server.restart();
    RawStore after(server.open());
    EXPECT_EQ(after.inspect()->last_token->value(), token);
  }
}

TEST_F(RowStoreTest, DefaultsOfADatabaseDoNotMatter) {
  psql("ALTER DATABASE " + server.database() + " SET default_transaction_isolation='serializable'");
  psql("ALTER DATABASE " + server.database() + " SET idle_session_timeout='100ms'");
  psql("ALTER DATABASE " + server.database() + " SET search_path='nowhere'");
  Client one{server.open()};
  int number = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int turn = 0; turn < 10; ++turn) {
        auto lease = one.acquire("job", {.wait = 60s});
        ASSERT_TRUE(lease) << to_string(lease.error());
        ++number;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(number, 40);
}

TEST_F(RowStoreTest, RoleThatMayNotMakeTheSchemaIsToldSo) {
  psql("CREATE ROLE " + server.database() + "_guest LOGIN");
  const std::string guest = shared_server().url(server.database(), server.database() + "_guest");
  const auto refused = open_postgres(guest);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unavailable);
  EXPECT_THAT(refused.error().message, HasSubstr("schema 'leasehold'"));
  EXPECT_THAT(refused.error().store_words, HasSubstr("permission denied"));
  server.open();  // the owner makes it
  psql("GRANT USAGE ON SCHEMA leasehold TO " + server.database() + "_guest");
  psql("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA leasehold TO " +
       server.database() + "_guest");
  auto opened = open_postgres(guest);
  ASSERT_TRUE(opened) << to_string(opened.error());
  Client client(std::move(*opened));
  EXPECT_TRUE(client.acquire_fenced("job"));
}

TEST_F(RowStoreTest, AnotherVersionOfTheSchemaIsRefused) {
  server.open();
  psql("UPDATE leasehold.meta SET version = 7");
  const auto refused = open_postgres(server.url());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unsupported);
  EXPECT_THAT(refused.error().message, HasSubstr("version 7"));
}

TEST_F(RowStoreTest, SchemaMayHaveANameThatIsAWordOfSql) {
  auto opened = open_postgres(server.url() + "&schema=user");
  ASSERT_TRUE(opened) << to_string(opened.error());
  Client client(std::move(*opened));
  EXPECT_TRUE(client.acquire_fenced("job"));
  EXPECT_EQ(psql("SELECT count(*) FROM \"user\".lock"), "1");
}

TEST_F(RowStoreTest, AcquireThatComesLateWhereNothingElseHappenedIsNotGranted) {
  RawStore raw(server.open(), "quiet");
  const RequestId released = new_request();
  EXPECT_TRUE(std::holds_alternative<Granted>(raw.acquire(released).value()));
  EXPECT_EQ(raw.release(released), ReleaseReply::released);
  EXPECT_TRUE(std::holds_alternative<Busy>(raw.acquire(released).value()));
}

TEST_F(RowStoreTest, WithdrawalIsForgottenInTheEnd) {
  RawStore raw(server.open());
  EXPECT_EQ(raw.release(new_request()), ReleaseReply::not_held);
  const auto attends_after_a_lease = [&] {
    const RequestId request = new_request();
    EXPECT_TRUE(std::holds_alternative<Granted>(raw.acquire(request).value()));
    EXPECT_EQ(raw.release(request), ReleaseReply::released);
    return psql("SELECT attend FROM leasehold.lock");
  };
  EXPECT_EQ(attends_after_a_lease(), "t") << "the late acquire may still come";
  psql("UPDATE leasehold.withdrawn SET at = at - interval '61 minutes'");
  EXPECT_EQ(attends_after_a_lease(), "f");
}

TEST_F(RowStoreTest, AcquireThatComesAfterItsReleaseIsNotGranted) {
  RawStore raw(server.open());
  for (const char* lock : {"never taken", "taken before"}) {
    const RequestId withdrawn = new_request();
    EXPECT_EQ(raw.release(withdrawn), ReleaseReply::not_held) << lock;
    EXPECT_TRUE(std::holds_alternative<Busy>(raw.acquire(withdrawn).value())) << lock;
    const RequestId released = new_request();
    EXPECT_TRUE(std::holds_alternative<Granted>(raw.acquire(released).value())) << lock;
    EXPECT_EQ(raw.release(released), ReleaseReply::released) << lock;
    EXPECT_TRUE(std::holds_alternative<Busy>(raw.acquire(released).value())) << lock;
  }
}

}  // namespace
}  // namespace leasehold::testing
