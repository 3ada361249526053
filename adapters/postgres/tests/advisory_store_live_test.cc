// The store of session advisory locks, on a real server, beside programs that are not Leasehold.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <libpq-fe.h>

#include <future>

#include "adapters/postgres/rig/pgbouncer.h"
#include "leasehold/postgres/transaction_lock.h"
#include "postgres_under_test.h"
#include "testing/lock_patterns_conformance.h"
#include "testing/worker.h"

namespace leasehold::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::StartsWith;

struct AdvisoryLocks final : PostgresUnderTest {
  AdvisoryLocks() : PostgresUnderTest("mode=advisory") {}
  bool has_session_per_waiter() const override { return true; }
};

INSTANTIATE_TEST_SUITE_P(Postgres, StoreConformance,
                         ::testing::Values(StoreCase{
                             "advisory", [] { return std::make_unique<AdvisoryLocks>(); }}),
                         name_of_store_case);

INSTANTIATE_TEST_SUITE_P(Postgres, LockPatternsConformance,
                         ::testing::Values(StoreCase{
                             "advisory",
                             [] { return std::make_unique<PostgresUnderTest>("mode=advisory"); }}),
                         name_of_store_case);

// The caller's own connection.
class Libpq {
 public:
  explicit Libpq(const std::string& url) : connection(PQconnectdb(url.c_str())) {}
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

class AdvisoryStoreTest : public ::testing::Test {
 protected:
  std::string psql(const std::string& sql) { return shared_server().psql(sql, server.database()); }
  std::string known_as(const std::string& lock = "job") {
    return client.inspect(lock_name(lock)).value().known_as;
  }
  std::string key() {
    const std::string call = known_as();
    const std::size_t open = call.find('(');
    return call.substr(open + 1, call.find(')') - open - 1);
  }
  // Who is said to hold it when it is asked for.
  std::string busy_with(const std::string& lock) {
    RawStore raw(server.open(), lock);
    return std::get<Busy>(raw.acquire(new_request()).value()).ahead;
  }
  // For libpq, which does not know our options.
  std::string plain_url() { return shared_server().url(server.database()); }
  // How many sessions stand in the server's own queue for an advisory lock.
  int queue_length() {
    return std::stoi(
        psql("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND"
             " database = (SELECT oid FROM pg_database WHERE datname = current_database())"));
  }
  void await_queue(int length) {
    while (queue_length() != length) std::this_thread::sleep_for(5ms);
  }

  PostgresUnderTest server{"mode=advisory"};
  Client client{server.open()};
};

TEST_F(AdvisoryStoreTest, UncontendedAcquireAndReleaseAreOneRoundTripEach) {
  expect_acquire_and_release_in_one_round_trip_each(server);
}

TEST_F(AdvisoryStoreTest, WaiterStandsInTheServersQueueAndAsksNothing) {
  auto lease = client.acquire("job");
  ASSERT_TRUE(lease);
  Client far(server.open_through_proxies());
  auto waiting = std::async(std::launch::async, [&] { return far.acquire("job", {.wait = 60s}); });
  await_queue(1);
  const std::size_t before = server.proxy().requests();
  // Longer than the two seconds after which the engine looks again.
  EXPECT_EQ(waiting.wait_for(5s), std::future_status::timeout);
  EXPECT_EQ(server.proxy().requests(), before);
  ASSERT_TRUE(lease->release());
  EXPECT_TRUE(waiting.get());
  EXPECT_GT(server.proxy().requests(), before) << "its requests are seen at all";
}

TEST_F(AdvisoryStoreTest, HolderIsFoundWhateverWayTimesAreWritten) {
  psql("ALTER DATABASE " + server.database() + " SET datestyle = 'SQL'");
  psql("ALTER DATABASE " + server.database() + " SET timezone = 'Asia/Kolkata'");
  RawStore holder(server.open());
  RawStore operator_(server.open());
  const RequestId request = new_request();
  ASSERT_TRUE(std::holds_alternative<Granted>(holder.acquire(request).value()));
  ASSERT_EQ(operator_.force_release(request), ReleaseReply::released);
  EXPECT_TRUE(std::holds_alternative<Granted>(operator_.acquire(new_request()).value()));
}

TEST_F(AdvisoryStoreTest, ReleaseWaitsForAGrantThatIsNotCommittedYet) {
  const std::string call = known_as();
  const RequestId request = new_request();
  Libpq late(plain_url());  // stands for an acquire whose caller has given up
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
TEST_F(AdvisoryStoreTest, RetryIsGrantedAlsoIfTheEarlierSessionEndsByItselfMeanwhile) {
  known_as();  // makes the schema
  const auto ask = [request = new_request().hex()](int attempt) {
    return "SELECT o_outcome FROM leasehold.session_acquire('job', '" + request +
           "', 'me', 30000, false, " + std::to_string(attempt) + ", " +
           (attempt > 1 ? "true" : "false") + ")";
  };
  Libpq earlier(plain_url());
  ASSERT_EQ(earlier.run(ask(1)), "granted");
  // It holds the lock when the retry asks for it, and is gone when the retry looks for it.
  Libpq later(plain_url());
  ASSERT_EQ(later.run("ALTER FUNCTION leasehold.earlier_session RENAME TO sought"), "");
  ASSERT_EQ(later.run("CREATE FUNCTION leasehold.earlier_session(bigint, uuid, bigint,"
                      " OUT o_pid integer, OUT o_start timestamptz) LANGUAGE plpgsql AS $$ BEGIN"
                      " PERFORM pg_terminate_backend(pid, 60000) FROM leasehold.session_lock;"
                      " SELECT * INTO o_pid, o_start FROM leasehold.sought($1, $2, $3); END $$"),
            "");
  EXPECT_EQ(later.run(ask(2)), "granted");
}

TEST_F(AdvisoryStoreTest, SessionThatOwesAnAnswerDoesNotHoldUpTheOthers) {
  RawStore raw(server.open(), "job", 2s);
  const Ttl ttl = Ttl::of(10min).value();
  const RequestId stuck = new_request();
  const RequestId other = new_request();
  ASSERT_TRUE(raw.acquire(stuck, 10min));
  ASSERT_TRUE(raw.acquire_another(lock_name("other"), other, 10min));
  Libpq locker(plain_url());
  locker.run("BEGIN");
  ASSERT_EQ(locker.run("SELECT 1 FROM leasehold.session_lock WHERE name = 'job' FOR UPDATE"), "1");
  ASSERT_FALSE(raw.try_renew(stuck, 10min)) << "its time runs out, and the answer is owed";
  const auto replies =
      raw.renew_together({{lock_name("job"), stuck, ttl}, {lock_name("other"), other, ttl}});
  ASSERT_TRUE(replies) << to_string(replies.error());
  EXPECT_THAT(*replies, ElementsAre(RenewReply::unknown, RenewReply::renewed));
  locker.run("ROLLBACK");
  EXPECT_EQ(raw.renew(stuck), RenewReply::renewed);
}

TEST_F(AdvisoryStoreTest, PsqlAndLeaseholdExcludeEachOther) {
  const std::string call = known_as();
  EXPECT_THAT(call, StartsWith("SELECT pg_try_advisory_lock("));
  auto lease = client.acquire("job");
  ASSERT_TRUE(lease);
  EXPECT_EQ(psql(call), "f");
  ASSERT_TRUE(lease->release());
  EXPECT_EQ(psql(call), "t");

  Libpq other(plain_url());
  EXPECT_EQ(other.run(call), "t");
  const auto refused = client.acquire("job");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::busy);
  EXPECT_THAT(refused.error().message, HasSubstr("user postgres"));
  const auto status = client.inspect(lock_name("job")).value();
  ASSERT_TRUE(status.holder());
  EXPECT_THAT(status.holder()->owner, HasSubstr("pid " + other.run("SELECT pg_backend_pid()")));

  auto waiting =
      std::async(std::launch::async, [&] { return client.acquire("job", {.wait = 60s}); });
  while (client.inspect(lock_name("job"))->waiters.empty()) std::this_thread::sleep_for(1ms);
  other.run("SELECT pg_advisory_unlock_all()");
  EXPECT_TRUE(waiting.get()) << "the server wakes it";
}

TEST_F(AdvisoryStoreTest, WhoWaitsForAnotherProgramIsToldSoAlsoLater) {
  Libpq other(plain_url());
  ASSERT_EQ(other.run(known_as()), "t");
  RawStore raw(server.open());
  const RequestId request = new_request();
  for (int i = 0; i < 2; ++i) {
    const auto reply = raw.acquire(request, 30s, /*queue=*/true).value();
    EXPECT_THAT(std::get<Queued>(reply).ahead, HasSubstr("user postgres"));
  }
}

TEST_F(AdvisoryStoreTest, OtherProgramsThatWaitAreListedInTheirTurn) {
  const std::string wait = "SELECT pg_advisory_lock(" + key() + ")";
  auto lease = client.acquire("job");
  ASSERT_TRUE(lease);
  Libpq other(plain_url() + "?application_name=export.py");
  const std::string pid = other.run("SELECT pg_backend_pid()");
  auto first = std::async(std::launch::async, [&] { return other.run(wait); });
  await_queue(1);
  auto second =
      std::async(std::launch::async, [&] { return client.acquire("job", {.wait = 60s}); });
  await_queue(2);
  const auto before = client.inspect(lock_name("job")).value();
  const std::string export_py = "export.py, pid " + pid + ", user postgres";
  const auto owner = [](const std::string& it) { return Field(&WaiterStatus::owner, it); };
  EXPECT_THAT(before.waiters, ElementsAre(owner(export_py), owner(default_owner_label().str())));
  EXPECT_FALSE(before.holder()->foreign);

  ASSERT_TRUE(lease->release());
  first.get();
  const auto after = client.inspect(lock_name("job")).value();
  EXPECT_EQ(after.holder()->owner, export_py);
  EXPECT_TRUE(after.holder()->foreign);
  EXPECT_EQ(after.waiters.size(), 1);
  other.run("SELECT pg_advisory_unlock_all()");
  EXPECT_TRUE(second.get());
}

TEST_F(AdvisoryStoreTest, OtherProgramsThatShareItAreOneHolder) {
  const std::string share = "SELECT pg_try_advisory_lock_shared(" + key() + ")";
  Libpq one(plain_url());
  Libpq two(plain_url());
  ASSERT_EQ(one.run(share), "t");
  ASSERT_EQ(two.run(share), "t");
  EXPECT_TRUE(client.inspect(lock_name("job")).value().holder()->foreign);
  ASSERT_FALSE(client.acquire("job"));
  psql("INSERT INTO leasehold.session_lock(name) VALUES ('job')");
  EXPECT_EQ(client.list().value().size(), 1);
}

TEST_F(AdvisoryStoreTest, ProgramThatHasTheLockIsNamedAndNotADeadHolder) {
  RawStore raw(server.open());
  ASSERT_TRUE(raw.acquire(new_request(), 10min));
  psql("SELECT pg_terminate_backend(pid, 5000) FROM pg_locks WHERE locktype = 'advisory'");
  EXPECT_EQ(raw.inspect().value().holder()->owner, "raw") << "its lease is waited out";
  EXPECT_EQ(busy_with("job"), "raw");

  Libpq other(plain_url());
  ASSERT_EQ(other.run(known_as()), "t");
  const std::string pid = "pid " + other.run("SELECT pg_backend_pid()");
  const auto status = client.inspect(lock_name("job")).value();
  EXPECT_THAT(status.holder()->owner, HasSubstr(pid));
  EXPECT_TRUE(status.holder()->foreign);
  EXPECT_THAT(busy_with("job"), HasSubstr(pid));
  Libpq mine(plain_url());
  mine.run("BEGIN");
  const auto refused = postgres::lock_in_transaction(mine.connection, lock_name("job"));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr(pid));
}

TEST_F(AdvisoryStoreTest, KeyIsTheDocumentedOne) {
  const std::string name = "Überweisung/☕ 'x'";
  const std::string key = psql("SELECT ('x' || encode(substr(sha256(convert_to($$" + name +
                               "$$, 'UTF8')), 1, 8), 'hex'))::bit(64)::bigint");
  EXPECT_EQ(known_as(name), "SELECT pg_try_advisory_lock(" + key + ")");
}

TEST_F(AdvisoryStoreTest, FrozenHolderLosesItsSessionAfterTheTtl) {
  const std::string call = known_as();
  Worker holder = Worker::hold(server.url(), "job", 1s);
  EXPECT_EQ(holder.line(), "asking");
  EXPECT_THAT(holder.line(), StartsWith("held"));
  holder.freeze();
  while (psql(call) != "t") std::this_thread::sleep_for(20ms);
  holder.thaw();
  EXPECT_EQ(holder.line(), "lost");
}

TEST_F(AdvisoryStoreTest, LeaseOfASessionThatWasEndedIsWaitedOut) {
  RawStore raw(server.open());
  ASSERT_TRUE(raw.acquire(new_request(), 4s));
  psql("SELECT pg_terminate_backend(pid, 5000) FROM pg_locks WHERE locktype = 'advisory'");
  EXPECT_EQ(client.acquire("job").error().code, ErrorCode::busy) << "its holder may not know yet";
  EXPECT_TRUE(client.acquire("job", {.wait = 30s}));
}

// ---- inside the caller's own transaction ---------------------------------------------------

class TransactionLockTest : public AdvisoryStoreTest {
 protected:
  static Status lock(const Libpq& connection, Millis wait = 0ms) {
    return postgres::lock_in_transaction(connection.connection, lock_name("job"), {.wait = wait});
  }
  // Returns when it stands in the queue.
  std::future<Status> lock_elsewhere(const Libpq& connection) {
    auto waiting = std::async(std::launch::async, [&] { return lock(connection, 60s); });
    while (queue_length() == 0) {
      const bool over = waiting.wait_for(5ms) != std::future_status::timeout;
      EXPECT_FALSE(over) << "it did not wait";
      if (over) break;
    }
    return waiting;
  }

  Libpq mine{plain_url()};
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

TEST_F(TransactionLockTest, NeedsUtf8) {
  mine.run("SET client_encoding = 'LATIN1'");
  mine.run("BEGIN");
  const auto refused = lock(mine);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::invalid) << "it would be another name";
  EXPECT_THAT(refused.error().message, HasSubstr("LATIN1"));
}

TEST_F(TransactionLockTest, SecondTransactionGetsItWhenTheFirstEnds) {
  Libpq other(plain_url());
  for (const std::string end : {"COMMIT", "ROLLBACK"}) {
    mine.run("BEGIN");
    other.run("BEGIN");
    ASSERT_TRUE(lock(mine));
    const auto busy = lock(other);
    ASSERT_FALSE(busy) << end;
    EXPECT_EQ(busy.error().code, ErrorCode::busy);
    EXPECT_THAT(busy.error().message, HasSubstr("pid " + mine.run("SELECT pg_backend_pid()")));

    auto waiting = lock_elsewhere(other);
    mine.run(end);
    const auto got = waiting.get();
    EXPECT_TRUE(got) << end << ": " << to_string(got.error());
    mine.run("BEGIN");
    EXPECT_FALSE(lock(mine)) << "the other has it now";
    mine.run("ROLLBACK");
    other.run("COMMIT");
  }
}

TEST_F(TransactionLockTest, ConnectionThatIsCutWhileItWaitsIsUnavailable) {
  Libpq far("postgres://postgres@" + server.proxy().address() + "/" + server.database());
  mine.run("BEGIN");
  ASSERT_TRUE(lock(mine));
  far.run("BEGIN");
  auto waiting = lock_elsewhere(far);
  server.proxy().cut();
  const auto failed = waiting.get();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::unavailable);
  EXPECT_THAT(failed.error().message, HasSubstr("lock 'job' was not taken"));
  EXPECT_THAT(failed.error().store_words, AnyOf(HasSubstr("server closed the connection"),
                                                HasSubstr("Connection reset by peer")));
  const auto again = lock(far);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::unavailable) << "not the caller's mistake";
}

TEST_F(TransactionLockTest, MissingSchemaIsNamed) {
  mine.run("BEGIN");
  const auto missing =
      postgres::lock_in_transaction(mine.connection, lock_name("job"), {.schema = "elsewhere"});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::unavailable);
  EXPECT_THAT(missing.error().message, HasSubstr("the schema 'elsewhere' is not in this database"));
  EXPECT_THAT(missing.error().store_words, HasSubstr("\"elsewhere\" does not exist"));
}

TEST_F(TransactionLockTest, WorksThroughATransactionPooler) {
  const rig::Pgbouncer pooler(shared_server());
  Libpq one(pooler.url(server.database()));
  Libpq two(pooler.url(server.database()));
  const std::string idle_timeout = "SHOW idle_in_transaction_session_timeout";
  one.run("BEGIN");
  two.run("BEGIN");
  const auto got = lock(one);
  ASSERT_TRUE(got) << to_string(got.error());
  EXPECT_EQ(one.run(idle_timeout), "30s");
  EXPECT_EQ(client.acquire("job").error().code, ErrorCode::busy);
  auto waiting = lock_elsewhere(two);
  one.run("COMMIT");
  EXPECT_TRUE(waiting.get());
  two.run("COMMIT");
  EXPECT_EQ(one.run(idle_timeout), "0") << "nothing stays behind in the pooled session";
  EXPECT_TRUE(client.acquire("job"));
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
    return postgres::lock_in_transaction(mine.connection, lock_name("job"),
                                         {.wait = Millis::max()});
  });
  ASSERT_TRUE(lease->release());
  EXPECT_TRUE(waiting.get());
}

TEST_F(TransactionLockTest, IdleTransactionIsEndedByTheServer) {
  mine.run("BEGIN");
  ASSERT_TRUE(
      postgres::lock_in_transaction(mine.connection, lock_name("job"), {.idle_timeout = 200ms}));
  EXPECT_TRUE(client.acquire("job", {.wait = 30s})) << "though the program is still there";
  EXPECT_NE(mine.run("SELECT 1"), "1") << "the session has ended";
}

}  // namespace
}  // namespace leasehold::testing
