// Each fault is seen at a server that has it, and not at one that has not.
#include <gmock/gmock.h>

#include <thread>

#include "adapters/postgres/rig/pgbouncer.h"
#include "adapters/postgres/rig/server.h"
#include "leasehold/client.h"
#include "leasehold/examination.h"
#include "leasehold/postgres/adapter.h"
#include "scripted_postgres.h"
#include "testing/examining.h"
#include "testing/findings.h"

namespace leasehold::postgres {
namespace {

using namespace std::chrono_literals;
using leasehold::rig::Pgbouncer;
using leasehold::rig::PostgresServer;
using leasehold::testing::Examining;
using leasehold::testing::findings_of;
using leasehold::testing::Finds;
using leasehold::testing::is_ok;
using leasehold::testing::ScriptedServer;
using leasehold::testing::told;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// With the program's end; a server that is as it should be.
PostgresServer& good_server() {
  static PostgresServer server;
  return server;
}

struct ExaminationTest : Examining {
  ExaminationTest() : Examining(adapters()) {}
};

TEST_F(ExaminationTest, AServerAloneIsOk) {
  const std::string database = good_server().create_database();
  const auto diagnosis = look(good_server().url(database));
  ASSERT_TRUE(diagnosis);
  EXPECT_THAT(diagnosis->findings,
              AllOf(is_ok("postgres.hosts"), is_ok("postgres.version"), is_ok("postgres.pooler"),
                    is_ok("postgres.fsync"), is_ok("postgres.full_page_writes"),
                    is_ok("postgres.synchronous_commit"), is_ok("postgres.standbys"),
                    is_ok("postgres.writable"), is_ok("postgres.timeouts")));
  EXPECT_THAT(
      diagnosis->findings,
      AllOf(is_ok("postgres.connections"), is_ok("postgres.round_trip"), is_ok("postgres.clock"),
            Finds("postgres.schema", Severity::note, "not there yet")));
  EXPECT_EQ(diagnosis->traits->guarantee, Guarantee::correctness);
  EXPECT_FALSE(diagnosis->lineage);
  EXPECT_EQ(
      good_server().psql("SELECT count(*) FROM pg_namespace WHERE nspname = 'leasehold'", database),
      "0")
      << "looking makes nothing";
}

TEST_F(ExaminationTest, TheLineageIsThatOfTheMode) {
  for (const std::string mode : {"?mode=rows", "?mode=advisory"}) {
    const std::string url = good_server().url(good_server().create_database()) + mode;
    auto client = connect(url, {}, registry);
    ASSERT_TRUE(client);
    const auto lease = client->acquire_fenced("job");
    ASSERT_TRUE(lease);
    const auto diagnosis = look(url);
    EXPECT_THAT(diagnosis->findings, is_ok("postgres.schema"));
    EXPECT_EQ(diagnosis->lineage, lease->token().lineage.store);
  }
}

TEST_F(ExaminationTest, AServerThatIsTooOldIsADanger) {
  const ScriptedServer old([](int fd) { leasehold::testing::wire::be_postgres(fd, "12.22"); });
  const auto findings = found("postgres://u@" + old.address() + "/db?tls=off");
  EXPECT_THAT(findings, Finds("postgres.version", Severity::danger, "It is PostgreSQL 12.22."));
  EXPECT_THAT(findings, Finds("postgres.version", Severity::danger, "Leasehold needs 14 or later"));
}

TEST_F(ExaminationTest, AnotherSchemaVersionIsADanger) {
  const std::string database = good_server().create_database();
  ASSERT_TRUE(connect(good_server().url(database), {}, registry));
  good_server().psql("UPDATE leasehold.meta SET version = 99", database);
  EXPECT_THAT(found(good_server().url(database)),
              Finds("postgres.schema", Severity::danger, "version 99"));
}

TEST_F(ExaminationTest, ARoleThatMayNotMakeTheSchemaIsADangerAndOneThatMayNotLookUnseen) {
  const std::string database = good_server().create_database();
  good_server().psql("CREATE ROLE stranger LOGIN");
  EXPECT_THAT(found(good_server().url(database, "stranger")),
              Finds("postgres.schema", Severity::danger, "may not make it"));
  ASSERT_TRUE(connect(good_server().url(database), {}, registry));
  good_server().psql("REVOKE ALL ON SCHEMA leasehold FROM PUBLIC", database);
  EXPECT_THAT(found(good_server().url(database, "stranger")),
              Finds("postgres.schema", Severity::unseen, "GRANT USAGE"));
}

TEST_F(ExaminationTest, ADiskThatForgetsIsSeen) {
  const PostgresServer server(
      {.settings = {"fsync=off", "full_page_writes=off", "synchronous_commit=off"}});
  EXPECT_THAT(found(server.url("postgres")),
              AllOf(Finds("postgres.fsync", Severity::danger, "fsync is off"),
                    Finds("postgres.full_page_writes", Severity::warning, "tore"),
                    Finds("postgres.synchronous_commit", Severity::note, "is off"),
                    Finds("postgres.fsync", Severity::danger, "from the command line")));
}

TEST_F(ExaminationTest, AFixSaysWhereTheSettingComesFrom) {
  PostgresServer server;
  server.psql("ALTER SYSTEM SET fsync = off");
  server.psql("SELECT pg_reload_conf()");
  while (server.psql("SHOW fsync").find("off") == std::string::npos) std::this_thread::yield();
  EXPECT_THAT(found(server.url("postgres")),
              AllOf(Finds("postgres.fsync", Severity::danger, "postgresql.auto.conf line "),
                    Finds("postgres.fsync", Severity::danger, "ALTER SYSTEM SET fsync = on")));
}

TEST_F(ExaminationTest, SettingsOfARoleAndADatabaseAreSeenWithTheirSource) {
  const std::string database = good_server().create_database();
  good_server().psql("ALTER DATABASE " + database + " SET synchronous_commit = local");
  good_server().psql("CREATE ROLE reader LOGIN SUPERUSER");
  good_server().psql("ALTER ROLE reader SET default_transaction_read_only = on");
  const auto all = found(good_server().url(database, "reader"));
  EXPECT_THAT(all, AllOf(Finds("postgres.synchronous_commit", Severity::note, "from: database"),
                         Finds("postgres.writable", Severity::danger, "from: user")));
}

TEST_F(ExaminationTest, ATimeoutMattersWhereLeaseholdDoesNotSetItsOwn) {
  const std::string database = good_server().create_database();
  good_server().psql("ALTER DATABASE " + database + " SET statement_timeout = '200ms'");
  const std::string url = good_server().url(database);
  EXPECT_THAT(found(url), is_ok("postgres.timeouts"));
  EXPECT_THAT(found(url, {.as = ExaminedAs::fence}),
              Finds("postgres.timeouts", Severity::warning, "statement_timeout is 200 ms"));
}

TEST_F(ExaminationTest, FewFreeConnectionsAreAWarning) {
  const PostgresServer server(
      {.settings = {"max_connections=8", "superuser_reserved_connections=7", "max_wal_senders=0"}});
  EXPECT_THAT(found(server.url("postgres")),
              Finds("postgres.connections", Severity::warning, "1 of 1 connections"));
}

// ---- pooler --------------------------------------------------------------------------------

TEST_F(ExaminationTest, ATransactionPoolerIsProvedAndASessionPoolerIsNot) {
  const Pgbouncer per_transaction(good_server(), "transaction");
  const Pgbouncer per_session(good_server(), "session");
  EXPECT_THAT(found(per_transaction.url("postgres")),
              Finds("postgres.pooler", Severity::note, "per transaction: two connections"));
  EXPECT_THAT(found(per_session.url("postgres")),
              Finds("postgres.pooler", Severity::note, "could not be proved"));
}

TEST_F(ExaminationTest, AdvisoryLocksBehindAPoolerAreADanger) {
  const Pgbouncer pooler(good_server(), "transaction");
  EXPECT_THAT(found(pooler.url("postgres") + "?mode=advisory"),
              Finds("postgres.pooler", Severity::danger, "mode=rows"));
  EXPECT_THAT(found(pooler.url("postgres"), {.as = ExaminedAs::fence}),
              Finds("postgres.pooler", Severity::note, "one transaction"));
  EXPECT_THAT(found(good_server().url("postgres") + "?mode=advisory"), is_ok("postgres.pooler"));
}

TEST_F(ExaminationTest, ATimeoutBehindAPoolerIsAWarning) {
  const std::string database = good_server().create_database();
  good_server().psql("ALTER DATABASE " + database + " SET statement_timeout = '200ms'");
  const Pgbouncer pooler(good_server(), "transaction");
  EXPECT_THAT(found(pooler.url(database)),
              Finds("postgres.timeouts", Severity::warning, "statement_timeout is 200 ms"));
}

// ---- standbys ------------------------------------------------------------------------------

struct StandbyExaminationTest : ExaminationTest {
  PostgresServer primary;
  PostgresServer standby{{.standby_of = &primary}};

  void set(const std::string& setting) const {
    primary.psql("ALTER SYSTEM SET " + setting);
    primary.psql("SELECT pg_reload_conf()");
  }
  void wait_until(const std::string& condition) const {
    while (primary.psql("SELECT " + condition) != "t") {
    }
  }
};

TEST_F(StandbyExaminationTest, AsynchronousOnesAreAWarningAndSynchronousOnesOk) {
  wait_until("EXISTS (SELECT 1 FROM pg_stat_replication WHERE state = 'streaming')");
  const std::string url = primary.url("postgres");
  const auto diagnosis = look(url);
  EXPECT_THAT(diagnosis->findings,
              Finds("postgres.standbys", Severity::warning, "'standby' (async)"));
  EXPECT_EQ(diagnosis->traits->guarantee, Guarantee::efficiency);
  EXPECT_THAT(found(url, {.as = ExaminedAs::fence}),
              Finds("postgres.standbys", Severity::warning, "mark"));
  EXPECT_THAT(found(url + "?failover=none"),
              Finds("postgres.standbys", Severity::note, "failover=none"));
  primary.psql("CREATE ROLE stranger LOGIN");
  EXPECT_THAT(found(primary.url("postgres", "stranger")),
              Finds("postgres.standbys", Severity::unseen, "pg_monitor"));
  set("synchronous_standby_names = 'standby'");
  wait_until("EXISTS (SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync')");
  EXPECT_THAT(found(url), is_ok("postgres.standbys"));
}

TEST_F(StandbyExaminationTest, AStandbyItselfIsADangerUnlessThePrimaryIsNamedToo) {
  const auto alone = look(standby.url("postgres"));
  ASSERT_TRUE(alone);
  EXPECT_THAT(alone->findings, Finds("postgres.hosts", Severity::danger, "standby"));
  EXPECT_FALSE(alone->traits);
  const auto both =
      look("postgres://postgres@" + standby.address() + "," + primary.address() + "/postgres");
  ASSERT_TRUE(both);
  EXPECT_THAT(both->findings,
              AllOf(Finds("postgres.hosts", Severity::note, "goes on"), is_ok("postgres.fsync")));
}

TEST_F(StandbyExaminationTest, CommitsThatWaitForNobodyAreADangerAndSlotsOfTheAbsentAWarning) {
  standby.kill();
  wait_until("NOT EXISTS (SELECT 1 FROM pg_stat_replication)");
  EXPECT_THAT(found(primary.url("postgres")), is_ok("postgres.standbys"));
  primary.psql("SELECT pg_create_physical_replication_slot('absent', true)");
  EXPECT_THAT(found(primary.url("postgres")),
              Finds("postgres.standbys", Severity::warning, "slot 'absent'"));
  set("synchronous_standby_names = 'nobody'");
  wait_until("current_setting('synchronous_standby_names') = 'nobody'");
  EXPECT_THAT(found(primary.url("postgres")),
              AllOf(Finds("postgres.standbys", Severity::danger, "needed 1, streaming 0"),
                    Finds("postgres.round_trip", Severity::unseen, "waits for a standby")));
}

TEST_F(StandbyExaminationTest, TooFewToWaitForAreADangerWhoeverElseIsConnected) {
  const auto found_with = [this](const std::string& names) {
    set("synchronous_standby_names = '" + names + "'");
    wait_until("current_setting('synchronous_standby_names') = '" + names + "'");
    const bool named = names.find("standby") != std::string::npos;
    if (named) wait_until("EXISTS (SELECT 1 FROM pg_stat_replication WHERE sync_priority > 0)");
    return found(primary.url("postgres"));
  };
  const auto commits_hang = [](const std::string& seen) {
    return AllOf(Finds("postgres.standbys", Severity::danger, seen),
                 Finds("postgres.round_trip", Severity::unseen, "waits for a standby"));
  };
  wait_until("EXISTS (SELECT 1 FROM pg_stat_replication WHERE state = 'streaming')");
  EXPECT_THAT(found_with("nosuch"), commits_hang("needed 1, streaming 0"));
  EXPECT_THAT(found_with("first 2 (standby, other)"), commits_hang("needed 2, streaming 1"));
  EXPECT_THAT(found_with("2(standby, other)"), commits_hang("needed 2, streaming 1"));
  EXPECT_THAT(found_with("ANY 2 (standby, other)"), commits_hang("needed 2, streaming 1"));
  EXPECT_THAT(found_with("ANY 1 (standby, other)"),
              Finds("postgres.standbys", Severity::warning, "'standby' (quorum)"));
  EXPECT_THAT(found_with("FIRST 1 (standby, other)"), is_ok("postgres.standbys"));
}

TEST_F(StandbyExaminationTest, AStandbyThatDoesNotConfirmIsADanger) {
  set("synchronous_standby_names = 'standby'");
  wait_until("EXISTS (SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync')");
  standby.freeze();
  const auto diagnosis = look(primary.url("postgres"), {.timeout = 5s});
  standby.thaw();
  ASSERT_TRUE(diagnosis) << to_string(diagnosis.error());
  EXPECT_THAT(diagnosis->findings, Finds("postgres.round_trip", Severity::danger, "Commits hang"));
}

// ---- reaching it ---------------------------------------------------------------------------

TEST_F(ExaminationTest, WhatCannotBeReachedIsUnavailableAndAHostThatIsAwayAWarning) {
  const std::string away = "127.0.0.1:1";
  EXPECT_EQ(look("postgres://postgres@" + away + "/postgres").error().code, ErrorCode::unavailable);
  EXPECT_THAT(found("postgres://postgres@" + away + "," + good_server().address() + "/postgres"),
              AllOf(Finds("postgres.hosts", Severity::warning, "does not answer"),
                    is_ok("postgres.fsync")));
}

TEST_F(ExaminationTest, AHostThatSaysNothingIsAWarning) {
  const ScriptedServer silent(leasehold::testing::wire::only_listen);
  EXPECT_THAT(
      found("postgres://postgres@" + silent.address() + "," + good_server().address() + "/postgres",
            {.timeout = 6s}),
      AllOf(Finds("postgres.hosts", Severity::warning, "is no PostgreSQL server."),
            is_ok("postgres.fsync")));
}

TEST_F(ExaminationTest, AFrozenServerIsGivenUpInTime) {
  PostgresServer server;
  const std::string url = server.url("postgres");
  server.freeze();
  const BootTime before = BootClock::now();
  const auto frozen = look(url, {.timeout = 300ms});
  EXPECT_LT(BootClock::now() - before, 20s);
  server.thaw();
  EXPECT_EQ(frozen.error().code, ErrorCode::unavailable);
}

TEST_F(ExaminationTest, NoPasswordIsTold) {
  const std::string url = "postgres://postgres:hunter2@" + good_server().address() + "/postgres";
  EXPECT_THAT(told(found(url)), Not(HasSubstr("hunter2")));
  const auto refused = look("postgres://nobody:hunter2@" + good_server().address() + "/postgres");
  EXPECT_THAT(to_string(refused.error()), Not(HasSubstr("hunter2")));
}

TEST_F(ExaminationTest, AFenceUrlTakesNoOptionsOfLocks) {
  EXPECT_EQ(
      look(good_server().url("postgres") + "?mode=rows", {.as = ExaminedAs::fence}).error().code,
      ErrorCode::invalid);
}

}  // namespace
}  // namespace leasehold::postgres
