// How a waiter of lease rows is woken: rung in the statement in which its session dozes, while its
// lock changes hands quickly, and else notified.
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "leasehold/client.h"
#include "postgres_under_test.h"
#include "user_connection.h"

namespace leasehold::testing {
namespace {

using namespace std::chrono_literals;
using postgres::UserConnection;

class DozeTest : public ::testing::Test {
 protected:
  static constexpr const char* kSleeping =
      "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
      " AND wait_event = 'PgSleep' AND query LIKE '%doze%'";

  std::string psql(const std::string& sql) { return shared_server().psql(sql, server.database()); }
  std::string plain_url(const std::string& user = "postgres") {
    return shared_server().url(server.database(), user);
  }
  void until(const UserConnection& connection, const std::string& sql, const std::string& is) {
    while (connection.ask(sql) != is) std::this_thread::sleep_for(1ms);
  }
  // Its lock changed hands long ago, or seems to all the time.
  void make_quiet() { psql("UPDATE leasehold.lock SET granted_at = '-infinity'"); }
  void make_lively() { psql("UPDATE leasehold.lock SET granted_at = '2100-01-01'"); }

  void expect_queued(RawStore& store, const RequestId& request) {
    const auto reply = store.acquire(request, 30s, true);
    ASSERT_TRUE(reply) << to_string(reply.error());
    ASSERT_TRUE(std::holds_alternative<Queued>(*reply));
  }
  std::int64_t expect_granted(RawStore& store, const RequestId& request) {
    const auto reply = store.acquire(request, 30s, true);
    EXPECT_TRUE(reply) << to_string(reply.error());
    const auto* granted = reply ? std::get_if<Granted>(&*reply) : nullptr;
    EXPECT_NE(granted, nullptr);
    return granted == nullptr ? 0 : granted->token.value();
  }

  PostgresUnderTest server{"mode=rows"};
  const RequestId held = new_request();
  const RequestId queued = new_request();
};

// Hears what the only waiter is notified of.
class Spy {
 public:
  explicit Spy(const std::string& url) : connection_(url) {
    EXPECT_EQ(
        connection_.exec("LISTEN \"leasehold_" +
                         connection_.ask("SELECT to_hex(presence) FROM leasehold.waiter") + "\""),
        "");
  }
  bool heard() {
    EXPECT_EQ(connection_.exec("SELECT"), "");
    const std::unique_ptr<PGnotify, decltype(&PQfreemem)> notified(PQnotifies(connection_.get()),
                                                                   &PQfreemem);
    return notified != nullptr;
  }

 private:
  UserConnection connection_;
};

TEST_F(DozeTest, WhoDozesIsRungAndComesNext) {
  RawStore holder(server.open());
  RawStore waiter(server.open());
  const UserConnection sql(plain_url());
  const std::int64_t first = expect_granted(holder, held);
  make_lively();
  expect_queued(waiter, queued);
  until(sql, kSleeping, "1");
  EXPECT_EQ(holder.release(held), ReleaseReply::released);
  EXPECT_TRUE(waiter.events.wait_for_nudge(queued, 30s));
  EXPECT_GT(expect_granted(waiter, queued), first);
}

TEST_F(DozeTest, WhoWaitsForAQuietLockListensAndIsNotified) {
  RawStore holder(server.open());
  RawStore waiter(server.open());
  expect_granted(holder, held);
  make_quiet();
  expect_queued(waiter, queued);
  Spy spy(plain_url());
  EXPECT_EQ(holder.release(held), ReleaseReply::released);
  EXPECT_TRUE(waiter.events.wait_for_nudge(queued, 30s));
  EXPECT_TRUE(spy.heard());
}

// The server may have given the number of a process that has ended to somebody else's.
TEST_F(DozeTest, AStrangersStatementIsNotEnded) {
  RawStore holder(server.open());
  RawStore waiter(server.open());
  const UserConnection stranger(plain_url());
  const UserConnection sql(plain_url());
  expect_granted(holder, held);
  make_quiet();
  expect_queued(waiter, queued);
  const std::string pid = stranger.ask("SELECT pg_backend_pid()");
  psql("UPDATE leasehold.waiter SET pid = " + pid);
  auto working =
      std::async(std::launch::async, [&] { return stranger.exec("SELECT pg_sleep(0.5)"); });
  until(sql, "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND pid = " + pid,
        "1");
  EXPECT_EQ(holder.release(held), ReleaseReply::released);
  EXPECT_TRUE(waiter.events.wait_for_nudge(queued, 30s));
  EXPECT_EQ(working.get(), "");
}

// ---- what comes between falling asleep and ringing ------------------------------------------

class DozingSession : public DozeTest {
 protected:
  // One that waits as docs/postgres.md tells other programs to, and listens.
  void SetUp() override {
    RawStore(server.open()).acquire(held);
    sql_.emplace(plain_url());
    session_.emplace(plain_url());
    EXPECT_EQ(session_->exec("SELECT pg_advisory_lock(7)"), "");
    pid_ = session_->ask("SELECT pg_backend_pid()");
    EXPECT_EQ(session_->ask("SELECT o_outcome FROM leasehold.acquire('job', '" + queued.hex() +
                            "', 'x', 30000, true, 7, 0, '', pg_backend_pid())"),
              "queued");
  }
  std::string release() const {
    return "SELECT leasehold.release('job', '" + held.hex() + "', 0, false)";
  }
  std::string doze(const std::string& millis) const {
    return "SELECT leasehold.doze(7, ARRAY['" + queued.hex() + "']::uuid[], " + millis + ")";
  }
  // One that may take locks, and nothing else.
  std::string role() {
    const std::string name = server.database() + "_other";
    psql("CREATE ROLE " + name + " LOGIN; GRANT USAGE ON SCHEMA leasehold TO " + name +
         "; GRANT ALL ON ALL TABLES IN SCHEMA leasehold TO " + name +
         "; GRANT ALL ON ALL SEQUENCES IN SCHEMA leasehold TO " + name);
    return name;
  }
  std::future<std::string> fall_asleep() {
    auto dozing = std::async(std::launch::async, [&] { return session_->ask(doze("60000")); });
    until(*sql_, sleeping(), "1");
    return dozing;
  }
  // What it says, if it does not fall asleep; else "sleeps".
  std::string doze_or_sleep() {
    auto dozing = std::async(std::launch::async, [&] { return session_->ask(doze("60000")); });
    while (dozing.wait_for(0s) != std::future_status::ready) {
      if (sql_->ask(sleeping()) == "0") continue;
      sql_->exec("SELECT pg_cancel_backend(" + pid_ + ")");
      return "sleeps";
    }
    return dozing.get();
  }
  std::string sleeping() const {
    return "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND pid = " + pid_;
  }

  std::optional<UserConnection> sql_;
  std::optional<UserConnection> session_;
  std::string pid_;
};

TEST_F(DozingSession, IsRungAndNobodyIsNotified) {
  Spy spy(plain_url());
  auto dozing = fall_asleep();
  ASSERT_EQ(sql_->ask(release()), "t");
  EXPECT_EQ(dozing.get(), "ask");
  EXPECT_FALSE(spy.heard());
}

// A waiter of one role, a releaser of another, which may not end what the session does.
TEST_F(DozingSession, OfAnotherRoleIsNotifiedAndNobodyDozesForAWhile) {
  const std::string other = role();
  const auto is_lively = [&] {
    make_lively();
    return sql_->ask("SELECT o_lively FROM leasehold.acquire('job', '" + new_request().hex() +
                     "', 'x', 30000, true, 7, 0, '', " + pid_ + ")");
  };
  Spy spy(plain_url());
  auto dozing = fall_asleep();
  EXPECT_EQ(UserConnection(plain_url(other)).ask(release()), "t");
  EXPECT_TRUE(spy.heard());
  EXPECT_EQ(sql_->ask(sleeping()), "1");
  EXPECT_EQ(sql_->ask("SELECT pg_cancel_backend(" + pid_ + ")"), "t");
  EXPECT_EQ(dozing.get(), "ask");
  EXPECT_EQ(is_lively(), "f");
  psql("UPDATE leasehold.lock SET no_bells_until = '-infinity'");
  EXPECT_EQ(is_lively(), "t");
}

TEST_F(DozingSession, IsNotifiedWhereNobodyMayEndStatements) {
  const std::string url = plain_url(role());
  psql("REVOKE EXECUTE ON FUNCTION pg_cancel_backend FROM PUBLIC");
  session_.emplace(url);
  EXPECT_EQ(session_->exec("SELECT pg_advisory_lock(7)"), "");
  pid_ = session_->ask("SELECT pg_backend_pid()");
  psql("UPDATE leasehold.waiter SET role = '" + server.database() + "_other', pid = " + pid_);
  Spy spy(plain_url());
  auto dozing = fall_asleep();
  EXPECT_EQ(UserConnection(url).ask(release()), "t");
  EXPECT_TRUE(spy.heard());
  EXPECT_EQ(sql_->ask("SELECT pg_cancel_backend(" + pid_ + ")"), "t");
  EXPECT_EQ(dozing.get(), "ask");
}

TEST_F(DozingSession, DoesNotFallAsleepBeforeWhoFoundItAwakeHasNotified) {
  const UserConnection releasing(plain_url());
  ASSERT_EQ(releasing.exec("BEGIN"), "");
  ASSERT_EQ(releasing.ask(release()), "t");
  EXPECT_EQ(doze_or_sleep(), "listen");
  ASSERT_EQ(releasing.exec("ROLLBACK"), "");
  EXPECT_EQ(doze_or_sleep(), "sleeps") << "it was taken back";
}

TEST_F(DozingSession, DoesNotFallAsleepWithALockToAskFor) {
  EXPECT_EQ(doze_or_sleep(), "sleeps");
  ASSERT_EQ(sql_->ask(release()), "t");
  EXPECT_EQ(doze_or_sleep(), "ask");
}

TEST_F(DozingSession, FallsAsleepBehindWhoComesFirst) {
  const RequestId behind = new_request();
  ASSERT_EQ(sql_->ask("SELECT o_outcome FROM leasehold.acquire('job', '" + behind.hex() +
                      "', 'x', 30000, true, 7, 0, '', " + pid_ + ")"),
            "queued");
  ASSERT_EQ(sql_->ask(release()), "t");
  make_lively();
  EXPECT_EQ(session_->ask("SELECT leasehold.doze(7, ARRAY['" + behind.hex() + "']::uuid[], 1)"),
            "doze");
}

TEST_F(DozingSession, SaysWhetherTheLockIsStillLively) {
  make_lively();
  EXPECT_EQ(session_->ask(doze("1")), "doze");
  make_quiet();
  EXPECT_EQ(session_->ask(doze("1")), "listen");
}

// The ring itself would come when the session does not doze any more.
TEST_F(DozingSession, AsksIfItIsAboutToBeRungInItsLastInstant) {
  ASSERT_EQ(sql_->exec("SELECT pg_advisory_lock_shared(leasehold.rope(7, " + pid_ + "))"), "");
  EXPECT_EQ(session_->ask(doze("1")), "ask");
}

TEST_F(DozingSession, IsNotTakenToDozeInItsLastInstant) {
  Spy spy(plain_url());
  make_lively();
  ASSERT_EQ(session_->exec("BEGIN"), "");
  ASSERT_EQ(session_->ask(doze("1")), "doze");
  auto releasing = std::async(std::launch::async, [&] { return sql_->ask(release()); });
  while (releasing.wait_for(0s) != std::future_status::ready &&
         psql("SELECT count(*) FROM pg_locks WHERE NOT granted") == "0") {
  }
  ASSERT_EQ(session_->exec("COMMIT"), "");
  EXPECT_EQ(releasing.get(), "t");
  EXPECT_TRUE(spy.heard());
}

TEST_F(DozingSession, OfSeveralRequestsTheFirstInLineIsNamed) {
  const RequestId second = new_request();
  ASSERT_EQ(sql_->ask("SELECT o_outcome FROM leasehold.acquire('job', '" + second.hex() +
                      "', 'x', 30000, true, 7)"),
            "queued");
  const auto count_first = [&](const std::string& which) {
    return session_->ask("SELECT count(*) FROM leasehold.first_in_line(7, ARRAY[" + which +
                         "]::uuid[])");
  };
  const std::string both = "'" + queued.hex() + "', '" + second.hex() + "'";
  EXPECT_EQ(count_first(both), "1");
  EXPECT_EQ(count_first("'" + queued.hex() + "'"), "1");
  psql("UPDATE leasehold.waiter SET presence = 8 WHERE request = '" + queued.hex() + "'");
  EXPECT_EQ(count_first("'" + second.hex() + "'"), "1") << "the one before does not listen";
  ASSERT_EQ(sql_->exec("SELECT pg_advisory_lock(8)"), "");
  EXPECT_EQ(count_first("'" + second.hex() + "'"), "0");
}

// ---- two things at once ---------------------------------------------------------------------

TEST_F(DozeTest, AReleaserThatIsKilledAfterItRangHasReleasedNothing) {
  RawStore holder(server.open());
  RawStore waiter(server.open());
  const UserConnection sql(plain_url());
  expect_granted(holder, held);
  make_lively();
  expect_queued(waiter, queued);
  until(sql, kSleeping, "1");
  {
    const UserConnection releasing(plain_url());
    ASSERT_EQ(releasing.exec("BEGIN"), "");
    ASSERT_EQ(releasing.ask("SELECT leasehold.release('job', '" + held.hex() + "', 0, false)"),
              "t");
    EXPECT_TRUE(waiter.events.wait_for_nudge(queued, 30s)) << "before it is committed";
    auto asking = std::async(std::launch::async, [&] { return waiter.acquire(queued, 30s, true); });
    until(sql, "SELECT count(*) > 0 FROM pg_locks WHERE NOT granted", "t");
    EXPECT_EQ(sql.ask("SELECT pg_terminate_backend(" +
                      std::to_string(PQbackendPID(releasing.get())) + ")"),
              "t");
    const auto reply = asking.get();
    ASSERT_TRUE(reply) << to_string(reply.error());
    EXPECT_TRUE(std::holds_alternative<Queued>(*reply)) << "it is held as before";
  }
  waiter.events.forget_nudges();
  EXPECT_EQ(holder.release(held), ReleaseReply::released);
  EXPECT_TRUE(waiter.events.wait_for_nudge(queued, 30s));
  expect_granted(waiter, queued);
}

// Nobody else is told: who comes next finds out by asking, as it must in time.
TEST_F(DozeTest, AWaiterThatIsKilledAfterItWasRungIsPassedOver) {
  RawStore holder(server.open());
  auto killed = std::make_unique<RawStore>(server.open());
  RawStore next(server.open());
  const RequestId third = new_request();
  const UserConnection sql(plain_url());
  const std::int64_t first = expect_granted(holder, held);
  make_lively();
  expect_queued(*killed, queued);
  expect_queued(next, third);
  until(sql, kSleeping, "2");
  EXPECT_EQ(holder.release(held), ReleaseReply::released);
  EXPECT_TRUE(killed->events.wait_for_nudge(queued, 30s));
  killed.reset();
  until(sql, "SELECT count(*) FROM leasehold.waiter WHERE leasehold.listens(presence)", "1");
  EXPECT_GT(expect_granted(next, third), first);
}

// The answer to the ring is lost with its connection, and the new one takes long: the engine's own
// timer is the second to fall back on.
TEST_F(DozeTest, ALostRingIsMadeUpForByTheNextLook) {
  RawStore holder(server.open());
  Client waiting(server.open_through_proxies());
  const UserConnection sql(plain_url());
  expect_granted(holder, held);
  make_lively();
  auto lease = std::async(std::launch::async,
                          [&] { return waiting.acquire("job", {.ttl = 30s, .wait = 60s}); });
  until(sql, kSleeping, "1");
  server.proxy().delay(300ms);
  server.proxy().cut();
  EXPECT_EQ(holder.release(held), ReleaseReply::released);
  const auto got = lease.get();
  EXPECT_TRUE(got) << to_string(got.error());
}

// ---- what is on the disk --------------------------------------------------------------------

TEST_F(DozingSession, OnlyAReleaseThatSomebodyFollowsIsCommittedLazily) {
  const auto commit_after = [&](const std::string& more) {
    const UserConnection releasing(plain_url());
    EXPECT_EQ(releasing.exec("SET synchronous_commit = on; BEGIN"), "");
    EXPECT_EQ(
        releasing.ask("SELECT leasehold.release('job', '" + held.hex() + "', 0, " + more + ")"),
        "t");
    std::string setting = releasing.ask("SHOW synchronous_commit");
    EXPECT_EQ(releasing.exec("ROLLBACK"), "");
    return setting;
  };
  EXPECT_EQ(commit_after("false, true"), "off");
  EXPECT_EQ(commit_after("true, true"), "on") << "its withdrawal is to last";
  EXPECT_EQ(commit_after("false, false"), "on") << "somebody's own work, which may come after it";
  ASSERT_EQ(session_->exec("SELECT pg_advisory_unlock(7)"), "");
  EXPECT_EQ(commit_after("false, true"), "on") << "nobody listens";
}

TEST_F(DozeTest, AHandOffIsDurableOnceTheNextHasItsAnswer) {
  std::int64_t token = 0;
  {
    RawStore holder(server.open());
    RawStore waiter(server.open());
    expect_granted(holder, held);
    expect_queued(waiter, queued);
    EXPECT_EQ(holder.release(held), ReleaseReply::released);
    token = expect_granted(waiter, queued);
    server.kill();
    server.start();
  }
  RawStore after(server.open());
  const auto status = after.inspect();
  ASSERT_TRUE(status && status->holder());
  EXPECT_EQ(status->holder()->request, queued);
  EXPECT_EQ(status->last_token->value(), token);
}

}  // namespace
}  // namespace leasehold::testing
