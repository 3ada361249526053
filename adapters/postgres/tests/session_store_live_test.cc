// The store of session advisory locks, on a real server, beside programs that are not Leasehold.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <libpq-fe.h>

#include <future>

#include "leasehold/postgres/transaction_lock.h"
#include "postgres_under_test.h"
#include "testing/worker.h"

namespace leasehold::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::StartsWith;

INSTANTIATE_TEST_SUITE_P(Postgres, StoreConformance,
                         ::testing::Values(StoreCase{
                             "advisory",
                             [] { return std::make_unique<PostgresUnderTest>("mode=advisory"); }}),
                         name_of_store_case);

// The caller's own connection.
class Libpq {
 public:
  explicit Libpq(const std::string& database)
      : connection(PQconnectdb(("host=127.0.0.1 port=" + std::to_string(shared_server().port()) +
                                " user=postgres dbname=" + database)
                                   .c_str())) {}
  ~Libpq() { PQfinish(connection); }
  Libpq(const Libpq&) = delete;

  // The first value, or the complaint.
  std::string run(const std::string& sql) {
    PGresult* result = PQexec(connection, sql.c_str());
    std::string text =
        PQntuples(result) > 0 ? PQgetvalue(result, 0, 0) : PQresultErrorMessage(result);
    PQclear(result);
    return text;
  }

  PGconn* connection;
};

class SessionStoreTest : public ::testing::Test {
 protected:
  std::string psql(const std::string& sql) { return shared_server().psql(sql, server.database()); }
  std::string known_as(const std::string& lock = "job") {
    return client.inspect(lock_name(lock)).value().known_as;
  }

  PostgresUnderTest server{"mode=advisory"};
  Client client{server.open()};
};

TEST_F(SessionStoreTest, UncontendedAcquireAndReleaseAreOneRoundTripEach) {
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

TEST_F(SessionStoreTest, HolderIsFoundWhateverWayTimesAreWritten) {
  psql("ALTER DATABASE " + server.database() + " SET datestyle = 'SQL'");
  psql("ALTER DATABASE " + server.database() + " SET timezone = 'Asia/Kolkata'");
  RawStore holder(server.open());
  RawStore operator_(server.open());
  const RequestId request = new_request();
  ASSERT_TRUE(std::holds_alternative<Granted>(holder.acquire(request).value()));
  ASSERT_EQ(operator_.force_release(request), ReleaseReply::released);
  EXPECT_TRUE(std::holds_alternative<Granted>(operator_.acquire(new_request()).value()));
}

TEST_F(SessionStoreTest, ReleaseWaitsForAGrantThatIsNotCommittedYet) {
  const std::string call = known_as();
  const RequestId request = new_request();
  Libpq late(server.database());  // stands for an acquire whose caller has given up
  late.run("BEGIN");
  ASSERT_EQ(late.run(call), "t");
  ASSERT_EQ(late.run("SELECT o_outcome FROM leasehold.session_grant('job', '" + request.hex() +
                     "', 'late', 3600000, false)"),
            "granted");
  RawStore raw(server.open());
  auto released = std::async(std::launch::async, [&] { return raw.release(request); });
  while (psql("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE "
              "'%session_release%' AND pid <> pg_backend_pid()") != "1") {
    ASSERT_EQ(released.wait_for(10ms), std::future_status::timeout) << "it did not wait";
  }
  late.run("COMMIT");
  EXPECT_EQ(released.get(), ReleaseReply::released);
  EXPECT_TRUE(client.acquire("job")) << "long before its hour is over";
}

// The answer that one session owes may cost all the time there is. Twice that must stay far below
// the session's lock_timeout of 10 s.
TEST_F(SessionStoreTest, SessionThatOwesAnAnswerDoesNotHoldUpTheOthers) {
  RawStore raw(server.open(), "job", 2s);
  const Ttl ttl = Ttl::of(10min).value();
  const RequestId stuck = new_request();
  const RequestId other = new_request();
  ASSERT_TRUE(raw.acquire(stuck, 10min));
  ASSERT_TRUE(raw.acquire_another(lock_name("other"), other, 10min));
  Libpq locker(server.database());
  locker.run("BEGIN");
  ASSERT_EQ(locker.run("SELECT 1 FROM leasehold.session_lock WHERE name = 'job' FOR UPDATE"), "1");
  ASSERT_FALSE(raw.try_renew(stuck, 10min)) << "its time runs out, and the answer is owed";
  const auto replies =
      raw.renew_together({{lock_name("job"), stuck, ttl}, {lock_name("other"), other, ttl}});
  ASSERT_TRUE(replies) << to_string(replies.error());
  EXPECT_THAT(*replies, ::testing::ElementsAre(RenewReply::unknown, RenewReply::renewed));
  locker.run("ROLLBACK");
  EXPECT_EQ(raw.renew(stuck), RenewReply::renewed);
}

TEST_F(SessionStoreTest, PsqlAndLeaseholdExcludeEachOther) {
  const std::string call = known_as();
  EXPECT_THAT(call, StartsWith("SELECT pg_try_advisory_lock("));
  auto lease = client.acquire("job");
  ASSERT_TRUE(lease);
  EXPECT_EQ(psql(call), "f");
  ASSERT_TRUE(lease->release());
  EXPECT_EQ(psql(call), "t");

  Libpq other(server.database());
  EXPECT_EQ(other.run(call), "t");
  const auto refused = client.acquire("job");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::busy);
  EXPECT_THAT(refused.error().message, HasSubstr("user postgres"));
  const auto status = client.inspect(lock_name("job")).value();
  ASSERT_TRUE(status.holder);
  EXPECT_THAT(status.holder->owner, HasSubstr("pid " + other.run("SELECT pg_backend_pid()")));

  auto waiting =
      std::async(std::launch::async, [&] { return client.acquire("job", {.wait = 60s}); });
  while (client.inspect(lock_name("job"))->waiters.empty()) std::this_thread::sleep_for(1ms);
  other.run("SELECT pg_advisory_unlock_all()");
  EXPECT_TRUE(waiting.get()) << "the server wakes it";
}

TEST_F(SessionStoreTest, WhoWaitsForAnotherProgramIsToldSoAlsoLater) {
  Libpq other(server.database());
  ASSERT_EQ(other.run(known_as()), "t");
  RawStore raw(server.open());
  const RequestId request = new_request();
  for (int i = 0; i < 2; ++i) {
    const auto reply = raw.acquire(request, 30s, /*queue=*/true).value();
    EXPECT_THAT(std::get<Queued>(reply).ahead, HasSubstr("user postgres"));
  }
}

TEST_F(SessionStoreTest, KeyIsTheDocumentedOne) {
  const std::string name = "Überweisung/☕ 'x'";
  const std::string key = psql("SELECT ('x' || encode(substr(sha256(convert_to($$" + name +
                               "$$, 'UTF8')), 1, 8), 'hex'))::bit(64)::bigint");
  EXPECT_EQ(known_as(name), "SELECT pg_try_advisory_lock(" + key + ")");
}

TEST_F(SessionStoreTest, FrozenHolderLosesItsSessionAfterTheTtl) {
  const std::string call = known_as();
  Worker holder = Worker::hold(server.url(), "job", 1s);
  EXPECT_EQ(holder.line(), "asking");
  EXPECT_THAT(holder.line(), StartsWith("held"));
  holder.freeze();
  while (psql(call) != "t") std::this_thread::sleep_for(20ms);
  holder.thaw();
  EXPECT_EQ(holder.line(), "lost");
}

TEST_F(SessionStoreTest, LeaseOfASessionThatWasEndedIsWaitedOut) {
  RawStore raw(server.open());
  ASSERT_TRUE(raw.acquire(new_request(), 4s));
  psql("SELECT pg_terminate_backend(pid, 5000) FROM pg_locks WHERE locktype = 'advisory'");
  EXPECT_EQ(client.acquire("job").error().code, ErrorCode::busy) << "its holder may not know yet";
  EXPECT_TRUE(client.acquire("job", {.wait = 30s}));
}

// ---- inside the caller's own transaction ---------------------------------------------------

class TransactionLockTest : public SessionStoreTest {
 protected:
  Libpq mine{server.database()};
};

TEST_F(TransactionLockTest, NeedsATransaction) {
  const auto refused = postgres::lock_in_transaction(mine.connection, lock_name("job"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::invalid);
}

TEST_F(TransactionLockTest, NeedsReadCommitted) {
  mine.run("BEGIN ISOLATION LEVEL REPEATABLE READ");
  const auto refused = postgres::lock_in_transaction(mine.connection, lock_name("job"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::invalid);
  EXPECT_THAT(refused.error().store_words, HasSubstr("READ COMMITTED"));
}

TEST_F(TransactionLockTest, ExcludesLeasesUntilTheTransactionEnds) {
  for (const std::string end : {"COMMIT", "ROLLBACK"}) {
    mine.run("BEGIN");
    ASSERT_TRUE(postgres::lock_in_transaction(mine.connection, lock_name("job")));
    EXPECT_EQ(client.acquire("job").error().code, ErrorCode::busy);
    EXPECT_EQ(psql(known_as()), "f");
    mine.run(end);
    auto lease = client.acquire("job");
    ASSERT_TRUE(lease) << end;
    ASSERT_TRUE(lease->release());
  }
}

TEST_F(TransactionLockTest, IsRefusedWhileALeaseIsHeldAndTheTransactionGoesOn) {
  auto lease = client.acquire("job");
  ASSERT_TRUE(lease);
  mine.run("BEGIN");
  const auto busy = postgres::lock_in_transaction(mine.connection, lock_name("job"));
  ASSERT_FALSE(busy);
  EXPECT_EQ(busy.error().code, ErrorCode::busy);
  EXPECT_THAT(busy.error().message, HasSubstr(default_owner_label().str()));
  const auto late =
      postgres::lock_in_transaction(mine.connection, lock_name("job"), {.wait = 50ms});
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::timeout);
  EXPECT_EQ(mine.run("SELECT 'alive'"), "alive");
  EXPECT_EQ(mine.run("SHOW lock_timeout"), "0") << "as it was before";

  auto waiting = std::async(std::launch::async, [&] {
    return postgres::lock_in_transaction(mine.connection, lock_name("job"), {.wait = 60s});
  });
  ASSERT_TRUE(lease->release());
  EXPECT_TRUE(waiting.get());
}

TEST_F(TransactionLockTest, IdleTransactionIsEndedByTheServer) {
  mine.run("BEGIN");
  ASSERT_TRUE(
      postgres::lock_in_transaction(mine.connection, lock_name("job"), {.idle_limit = 200ms}));
  EXPECT_TRUE(client.acquire("job", {.wait = 30s})) << "though the program is still there";
  EXPECT_NE(mine.run("SELECT 1"), "1") << "the session has ended";
}

}  // namespace
}  // namespace leasehold::testing
