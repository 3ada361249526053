// The store of lease rows, on a real server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "postgres_under_test.h"
#include "testing/lock_patterns_conformance.h"
#include "testing/mode_conformance.h"
#include "testing/partitions_conformance.h"
#include "user_connection.h"

namespace leasehold::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

INSTANTIATE_TEST_SUITE_P(Postgres, StoreConformance,
                         ::testing::Values(StoreCase{
                             "rows",
                             [] { return std::make_unique<PostgresUnderTest>("mode=rows"); }}),
                         name_of_store_case);

INSTANTIATE_TEST_SUITE_P(Postgres, ModeConformance,
                         ::testing::Values(StoreCase{
                             "rows",
                             [] { return std::make_unique<PostgresUnderTest>("mode=rows"); }}),
                         name_of_store_case);

INSTANTIATE_TEST_SUITE_P(Postgres, PartitionsConformance,
                         ::testing::Values(StoreCase{
                             "rows",
                             [] { return std::make_unique<PostgresUnderTest>("mode=rows"); }}),
                         name_of_store_case);

INSTANTIATE_TEST_SUITE_P(Postgres, LockPatternsConformance,
                         ::testing::Values(StoreCase{
                             "rows",
                             [] { return std::make_unique<PostgresUnderTest>("mode=rows"); }}),
                         name_of_store_case);

class RowStoreTest : public ::testing::Test {
 protected:
  std::string psql(const std::string& sql) { return shared_server().psql(sql, server.database()); }

  PostgresUnderTest server{"mode=rows"};
};

TEST_F(RowStoreTest, UncontendedAcquireAndReleaseAreOneRoundTripEachInEveryMode) {
  for (const leasehold::Mode mode :
       {leasehold::Mode::exclusive(), leasehold::Mode::shared(), leasehold::Mode::permit_of(3)}) {
    SCOPED_TRACE(to_string(mode));
    expect_acquire_and_release_in_one_round_trip_each(server, mode);
  }
}

// docs/postgres.md tells other programs to.
TEST_F(RowStoreTest, OtherProgramsCallTheFunctionsBySql) {
  RawStore raw(server.open());
  const std::string request = "3d5e0c1a-0000-4000-8000-000000000001";
  const auto acquire = [&](const std::string& who, const std::string& queue) {
    return psql("SELECT o_outcome, o_token, o_ahead, o_fresh FROM leasehold.acquire('lock', '" +
                who + "', 'other', 30000, " + queue + ", NULL)");
  };
  const std::string other = "3d5e0c1a-0000-4000-8000-000000000002";
  EXPECT_EQ(acquire(request, "false"), "granted|1||t");
  EXPECT_EQ(acquire(request, "false"), "granted|1||") << "again";
  EXPECT_EQ(acquire(other, "false"), "busy||other|");
  EXPECT_EQ(acquire(other, "true"), "queued||other|");
  EXPECT_EQ(psql("SELECT leasehold.renew(ARRAY['lock', 'lock'], ARRAY['" + request + "', '" +
                 other + "']::uuid[], ARRAY[30000, 30000])"),
            "{t,f}");
  EXPECT_EQ(psql("SELECT leasehold.release('lock', '" + request + "', 0, false)"), "t");
  EXPECT_EQ(psql("SELECT leasehold.release('lock', '" + request + "', 0, false)"), "t") << "again";
  EXPECT_EQ(psql("SELECT leasehold.release('lock', '" + other + "', 0, true)"), "t") << "its place";
}

// A renewal locks the holder's row and not the lock's.
TEST_F(RowStoreTest, AReaderThatIsBeingRenewedIsNotPassedOver) {
  RawStore raw(server.open());
  const RequestId reader = new_request();
  ASSERT_TRUE(raw.acquire_as(leasehold::Mode::shared(), reader, false, 500ms));
  const postgres::UserConnection renewing(shared_server().url(server.database()));
  ASSERT_EQ(renewing.exec("BEGIN; SELECT leasehold.renew(ARRAY['job'], ARRAY['" + reader.hex() +
                          "']::uuid[], ARRAY[600000])"),
            "");
  while (!raw.inspect()->holders.empty()) std::this_thread::sleep_for(1ms);
  RawStore other(server.open());
  auto writer = std::async(std::launch::async, [&] { return other.acquire(new_request()); });
  while (psql("SELECT count(*) FROM pg_locks WHERE NOT granted") == "0" &&
         writer.wait_for(0s) != std::future_status::ready) {
  }
  ASSERT_EQ(renewing.exec("COMMIT"), "");
  const auto reply = writer.get();
  ASSERT_TRUE(reply) << to_string(reply.error());
  EXPECT_TRUE(std::holds_alternative<Busy>(*reply));
}

// Its listener is gone, so that it is passed over and keeps its place; meanwhile the lock came to
// another use.
TEST_F(RowStoreTest, WhoWasPassedOverDoesNotComeInBesideAnotherUse) {
  struct Use {
    const char* waiting;
    const char* holding;
  };
  for (const Use use : {Use{"-1", "4"}, Use{"3", "1"}, Use{"3", "-1"}}) {
    const std::string lock = std::string("from ") + use.waiting + " to " + use.holding;
    RawStore raw(server.open(), lock);
    const auto ask = [&](const RequestId& request, const char* mode, const char* presence) {
      return psql("SELECT o_outcome FROM leasehold.acquire('" + lock + "', '" + request.hex() +
                  "', 'x', 60000, true, " + presence + ", " + mode + ", '')");
    };
    const RequestId first = new_request();
    const RequestId waiter = new_request();
    const RequestId next = new_request();
    ASSERT_EQ(ask(first, use.waiting[0] == '-' ? "0" : use.waiting, "NULL"), "granted");
    if (use.waiting[0] != '-') {
      ASSERT_EQ(ask(new_request(), use.waiting, "NULL"), "granted");
      ASSERT_EQ(ask(new_request(), use.waiting, "NULL"), "granted");
    }
    ASSERT_EQ(ask(waiter, use.waiting, "777"), "queued");
    psql("DELETE FROM leasehold.holder");
    raw.release(first);
    ASSERT_EQ(ask(next, use.holding, "NULL"), "granted") << "nobody listens for the waiter";
    EXPECT_EQ(ask(waiter, use.waiting, "NULL"), "queued");
    EXPECT_EQ(raw.release(next), ReleaseReply::released);
    EXPECT_EQ(ask(waiter, use.waiting, "NULL"), "granted");
  }
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
    ASSERT_TRUE(again.force_release(status->holder()->request));
    const std::int64_t token = again.token(new_request());
    EXPECT_GT(token, last);
    server.restart();
    RawStore after(server.open());
    EXPECT_EQ(after.inspect()->last_token->value(), token);
  }
}

class CommitTest : public RowStoreTest {
 protected:
  std::string held(std::string_view lock, Millis ttl) {
    const RequestId request = new_request();
    EXPECT_TRUE(store.acquire_another(lock_name(lock), request, ttl));
    return "'" + request.hex() + "'";
  }
  // How a transaction of this would be committed. It is taken back.
  std::string commit_after(const std::string& sql) {
    const postgres::UserConnection session(shared_server().url(server.database()));
    EXPECT_EQ(session.exec("SET synchronous_commit = on; BEGIN; " + sql), "");
    std::string setting = session.ask("SHOW synchronous_commit");
    EXPECT_EQ(session.exec("ROLLBACK"), "");
    return setting;
  }
  static std::string release(const std::string& lock, const std::string& request,
                             const std::string& more) {
    return "SELECT leasehold.release('" + lock + "', " + request + ", " + more + ");";
  }
  static std::string release_both(const std::string& locks, const std::string& requests) {
    return "SELECT leasehold.release_many('{" + locks + "}', ARRAY[" + requests + "]::uuid[]);";
  }

  RawStore store{server.open()};
  const std::string brief = held("brief", 50s);
  const std::string lasting = held("lasting", 10min);
};

TEST_F(CommitTest, AReleaseNeedNotWaitForTheDiskIfItIsAloneAndCheapToLose) {
  EXPECT_EQ(commit_after(release("brief", brief, "0, false, true")), "off");
  EXPECT_EQ(commit_after(release("brief", brief, "0, false")), "on") << "perhaps it is not alone";
  EXPECT_EQ(commit_after(release("lasting", lasting, "0, false, true")), "on");
  EXPECT_EQ(commit_after(release("brief", lasting, "0, false, true")), "on") << "another's";
  EXPECT_EQ(commit_after(release("brief", brief, "1000, false, true")), "on") << "it is kept";
  EXPECT_EQ(commit_after(release("brief", brief, "0, true, true")), "on") << "it is withdrawn";
}

TEST_F(CommitTest, NorNeedOneOfWhoHoldsItBesideOthers) {
  for (const std::string mode : {"-1", "3"}) {
    SCOPED_TRACE(mode);
    const std::string request = "'" + new_request().hex() + "'";
    const auto commit_of = [&](const std::string& ttl_ms, const std::string& more) {
      return commit_after("SELECT leasehold.acquire('crowd', " + request + ", 'me', " + ttl_ms +
                          ", false, NULL, " + mode + ");" + release("crowd", request, more));
    };
    EXPECT_EQ(commit_of("50000", "0, false, true"), "off");
    EXPECT_EQ(commit_of("50000", "0, false"), "on") << "perhaps it is not alone";
    EXPECT_EQ(commit_of("600000", "0, false, true"), "on");
    EXPECT_EQ(commit_of("50000", "1000, false, true"), "on") << "it is kept";
    EXPECT_EQ(commit_of("50000", "0, true, true"), "on") << "it is withdrawn";
  }
}

TEST_F(CommitTest, ABatchNeedNotWaitForTheDiskIfItIsOfReleasesThatAreCheapToLose) {
  const std::string other = held("other", 50s);
  const std::string grants =
      "SELECT leasehold.acquire_many('{free}', ARRAY[gen_random_uuid()], '{me}', '{30000}', "
      "'{x}');";
  const std::string releases = release_both("brief,other", brief + "," + other);
  EXPECT_EQ(commit_after(releases), "off");
  EXPECT_EQ(commit_after(grants + releases), "on");
  EXPECT_EQ(commit_after(releases + grants), "on");
  EXPECT_EQ(commit_after(release_both("brief,lasting", brief + "," + lasting)), "on");
  EXPECT_EQ(commit_after(release_both("brief,other", other + "," + brief)), "on") << "no holder's";
}

TEST_F(RowStoreTest, DefaultsOfADatabaseDoNotMatter) {
  psql("ALTER DATABASE " + server.database() + " SET default_transaction_isolation='serializable'");
  psql("ALTER DATABASE " + server.database() + " SET idle_session_timeout='100ms'");
  psql("ALTER DATABASE " + server.database() + " SET search_path='nowhere'");
  Client one{server.open()};
  expect_threads_exclude_each_other(one, 4, 10);
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
  psql("GRANT USAGE, SELECT, UPDATE ON ALL SEQUENCES IN SCHEMA leasehold TO " + server.database() +
       "_guest");
  auto opened = open_postgres(guest);
  ASSERT_TRUE(opened) << to_string(opened.error());
  Client client(std::move(*opened));
  EXPECT_TRUE(client.acquire_fenced("job"));
}

TEST_F(RowStoreTest, AnotherVersionOfTheSchemaIsRefused) {
  server.open();
  psql("UPDATE leasehold.meta SET version = 99");
  const auto later = open_postgres(server.url());
  ASSERT_FALSE(later);
  EXPECT_EQ(later.error().code, ErrorCode::unsupported);
  EXPECT_THAT(later.error().message, HasSubstr("version 99"));
  EXPECT_THAT(later.error().message, HasSubstr("use a program that is at least as new"));
  EXPECT_THAT(later.error().message, Not(HasSubstr("DROP")));
  psql("UPDATE leasehold.meta SET version = 6");
  const auto earlier = open_postgres(server.url());
  ASSERT_FALSE(earlier);
  EXPECT_EQ(earlier.error().code, ErrorCode::unsupported);
  EXPECT_THAT(earlier.error().message, HasSubstr("version 6"));
  EXPECT_THAT(earlier.error().message, HasSubstr("DROP SCHEMA leasehold CASCADE"));
  psql("DROP SCHEMA leasehold CASCADE");
  EXPECT_TRUE(open_postgres(server.url()));
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

TEST_F(RowStoreTest, WithdrawalIsRememberedForAnHourAndForgottenInTheEnd) {
  RawStore raw(server.open());
  RawStore other(server.open(), "other");
  const RequestId withdrawn = new_request();
  EXPECT_EQ(raw.release(withdrawn), ReleaseReply::not_held);
  const auto attends_after_a_lease = [&] {
    const RequestId request = new_request();
    EXPECT_TRUE(std::holds_alternative<Granted>(raw.acquire(request).value()));
    EXPECT_EQ(raw.release(request), ReleaseReply::released);
    return psql("SELECT attend FROM leasehold.lock WHERE name = 'job'");
  };
  EXPECT_EQ(attends_after_a_lease(), "t") << "the late acquire may still come";
  const auto pass = [&](const std::string& time) {
    psql("UPDATE leasehold.withdrawn SET at = at - interval '" + time + "' WHERE lock = 'job'");
    EXPECT_EQ(other.release(new_request()), ReleaseReply::not_held) << "forgets what is old";
  };
  pass("59 minutes");
  EXPECT_EQ(attends_after_a_lease(), "t");
  for (const leasehold::Mode mode :
       {leasehold::Mode::exclusive(), leasehold::Mode::shared(), leasehold::Mode::permit_of(3)}) {
    EXPECT_TRUE(std::holds_alternative<Busy>(raw.acquire_as(mode, withdrawn).value()))
        << to_string(mode);
  }
  pass("2 minutes");
  EXPECT_EQ(attends_after_a_lease(), "f");
  EXPECT_EQ(psql("SELECT count(*) FROM leasehold.withdrawn WHERE lock = 'job'"), "0");
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
