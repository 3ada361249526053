#include "leasehold/postgres/once.h"

#include <string>

#include "fence_database.h"

namespace leasehold::postgres {
namespace {

using namespace std::chrono_literals;

class OnceTest : public FenceDatabase {
 protected:
  OnceTest() { EXPECT_TRUE(good(install_once(user_.get()))); }

  Once once() const { return once_of(user_); }
  static Once once_of(const UserConnection& user) { return Once::open(user.get()).value(); }
  std::string keys() const { return user_.ask("SELECT count(*) FROM leasehold_once.result"); }
};

auto add_row(std::string result) {
  return [result](OpenTransaction& open) -> Result<std::string> {
    if (auto ok = insert_row(open); !ok) return fail(ok.error());
    return result;
  };
}

TEST_F(OnceTest, WorkThatEndsTheTransactionStoresNothing) {
  const auto ended = once().run("k", "", [](OpenTransaction& open) -> Result<std::string> {
    (void)add_row("")(open);
    PQclear(PQexec(open.handle(), "COMMIT"));
    return "x";
  });
  EXPECT_TRUE(bad(ended, ErrorCode::invalid));
  EXPECT_EQ(keys(), "0");
  EXPECT_EQ(rows(), "0") << "the database refuses to commit a key without a result";
}

TEST_F(OnceTest, FailedStatementIsNotStored) {
  const auto ended = once().run("k", "", [](OpenTransaction& open) -> Result<std::string> {
    PQclear(PQexec(open.handle(), "SELECT 1/0"));
    return "x";
  });
  EXPECT_TRUE(bad(ended, ErrorCode::invalid));
  EXPECT_EQ(keys(), "0");
}

TEST_F(OnceTest, WorkThatLeavesPipelineModeOnIsToldSo) {
  const auto left = once().run("k", "", [](OpenTransaction& open) -> Result<std::string> {
    EXPECT_EQ(PQenterPipelineMode(open.handle()), 1);
    EXPECT_EQ(PQsendQueryParams(open.handle(), "INSERT INTO data VALUES('x')", 0, nullptr, nullptr,
                                nullptr, nullptr, 0),
              1);
    return "x";
  });
  ASSERT_TRUE(bad(left, ErrorCode::invalid));
  EXPECT_THAT(left.error().message, HasSubstr("pipeline mode"));
  EXPECT_EQ(PQpipelineStatus(user_.get()), PQ_PIPELINE_OFF);
  EXPECT_EQ(keys(), "0");
  EXPECT_EQ(rows(), "0");
}

TEST_F(OnceTest, AnswersThatTheWorkHasNotReadAreReadFirst) {
  const auto run = [&](const char* sql) {
    return once().run("k", "", [&](OpenTransaction& open) -> Result<std::string> {
      EXPECT_EQ(PQsendQuery(open.handle(), sql), 1);
      return "x";
    });
  };
  const auto failed = run("INSERT INTO data VALUES('x'); SELECT 1/0");
  ASSERT_TRUE(bad(failed, ErrorCode::invalid));
  EXPECT_THAT(failed.error().message, HasSubstr("had failed"));
  const auto over = run("ROLLBACK");
  ASSERT_TRUE(bad(over, ErrorCode::invalid));
  EXPECT_THAT(over.error().message, HasSubstr("was over"));
  EXPECT_EQ(rows(), "0");
  EXPECT_TRUE(good(run("INSERT INTO data VALUES('x'); SELECT 1")));
  EXPECT_EQ(rows(), "1");
  EXPECT_EQ(keys(), "1");
}

TEST_F(OnceTest, OtherKeysDoNotWait) {
  const UserConnection other(url());
  const auto first = once().run("k", "", [&](OpenTransaction& open) -> Result<std::string> {
    EXPECT_TRUE(good(once_of(other).run("l", "", add_row("other"), {.wait = 0ms})));
    return add_row("first")(open);
  });
  ASSERT_TRUE(good(first));
  EXPECT_EQ(rows(), "2");
}

TEST_F(OnceTest, TheSessionsLockTimeoutIsLeftAlone) {
  ASSERT_EQ(user_.exec("SET lock_timeout = 4321"), "");
  const auto inside = [](OpenTransaction& open) -> Result<std::string> {
    PGresult* shown = PQexec(open.handle(), "SHOW lock_timeout");
    const std::string text = PQgetvalue(shown, 0, 0);
    PQclear(shown);
    return text;
  };
  EXPECT_EQ(once().run("k", "", inside, {.wait = 7ms}).value().result, "4321ms");
  EXPECT_EQ(user_.ask("SHOW lock_timeout"), "4321ms");
}

// Where a snapshot is older than what it waited for.
class OnceWaiting : public OnceTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(OnceWaiting, ConcurrentRepeatWaitsAndGetsTheResult) {
  const UserConnection other(url());
  ASSERT_EQ(other.exec(std::string("SET default_transaction_isolation = '") + GetParam() + "'"),
            "");
  std::future<Result<OnceResult>> repeat;
  const auto first = once().run("k", "p", [&](OpenTransaction& open) -> Result<std::string> {
    repeat = std::async(std::launch::async, [&] {
      return once_of(other).run("k", "p", add_row("second"), {.wait = 60s});
    });
    await_waiter_elsewhere();
    return add_row("first")(open);
  });
  ASSERT_TRUE(good(first));
  const auto answer = repeat.get();
  ASSERT_TRUE(good(answer));
  EXPECT_TRUE(answer->replayed);
  EXPECT_EQ(answer->result, "first");
  EXPECT_EQ(rows(), "1");
}

INSTANTIATE_TEST_SUITE_P(Isolation, OnceWaiting,
                         ::testing::Values("repeatable read", "serializable"));

TEST_F(OnceTest, SessionKilledDuringTheWorkLeavesTheKeyFree) {
  const UserConnection doomed(url());
  const auto killed = once_of(doomed).run("k", "", [&](OpenTransaction& open) {
    auto done = add_row("lost")(open);
    EXPECT_EQ(
        user_.ask("SELECT pg_terminate_backend($1)", {std::to_string(PQbackendPID(open.handle()))}),
        "t");
    return done;
  });
  EXPECT_FALSE(killed);
  EXPECT_FALSE(once().run("k", "", add_row("r")).value().replayed);
  EXPECT_EQ(rows(), "1");
}

TEST_F(OnceTest, PlainSqlDoesTheSame) {
  ASSERT_EQ(user_.exec("BEGIN; SELECT leasehold_once.claim('k', 'p');"
                       "INSERT INTO data VALUES('x'); SELECT leasehold_once.store('k', 'r');"
                       "COMMIT"),
            "");
  EXPECT_EQ(once().run("k", "p", add_row("")).value().result, "r");
  EXPECT_EQ(user_.ask("SELECT convert_from(leasehold_once.claim('k', 'p'), 'UTF8')"), "r");
  EXPECT_THAT(user_.exec("SELECT leasehold_once.claim('k', 'q')"), StartsWith("LH004"));
  EXPECT_THAT(user_.exec("SELECT leasehold_once.claim('k', NULL)"), StartsWith("LH003"));
  EXPECT_THAT(user_.exec("SELECT leasehold_once.claim(NULL, 'p')"), StartsWith("LH003"));
  EXPECT_THAT(user_.exec("SELECT leasehold_once.claim('l', 'q')"), StartsWith("LH003"))
      << "a key without a result is not committed";
  EXPECT_THAT(user_.exec("BEGIN; SELECT leasehold_once.claim('l', 'q');"
                         "SELECT leasehold_once.claim('l', 'q')"),
              StartsWith("LH003"));
  ASSERT_EQ(user_.exec("ROLLBACK"), "");
  EXPECT_THAT(user_.exec("SELECT leasehold_once.store('k', 'again')"), StartsWith("LH003"));
  EXPECT_EQ(rows(), "1");
}

TEST_F(OnceTest, ResultIsCommittedDurably) {
  const auto during = [&](const std::string& usual) {
    EXPECT_EQ(user_.exec("SET synchronous_commit = " + usual), "");
    EXPECT_EQ(user_.exec("BEGIN; SELECT leasehold_once.claim('" + usual +
                         "', ''); SELECT leasehold_once.store('" + usual + "', '')"),
              "");
    const std::string seen = user_.ask("SHOW synchronous_commit");
    EXPECT_EQ(user_.exec("COMMIT"), "");
    EXPECT_EQ(user_.ask("SHOW synchronous_commit"), usual) << "the session's own stays";
    return seen;
  };
  for (const char* weak : {"off", "local", "remote_write"}) EXPECT_EQ(during(weak), "on");
  for (const char* strong : {"on", "remote_apply"}) EXPECT_EQ(during(strong), strong);
}

TEST_F(OnceTest, WhatIsForgottenIsForgottenDurably) {
  ASSERT_TRUE(good(once().run("k", "p", add_row("r"))));
  watch_commits("leasehold_once.result");
  EXPECT_EQ(once().forget_older_than(0s).value(), 1);
  EXPECT_EQ(commits(), "on");
}

TEST_F(OnceTest, RoleNeedsNoRightToTheTable) {
  ASSERT_EQ(
      user_.exec("DROP ROLE IF EXISTS clerk; CREATE ROLE clerk LOGIN;"
                 "GRANT INSERT ON data TO clerk; GRANT USAGE ON SCHEMA leasehold_once TO clerk"),
      "");
  {
    const UserConnection clerk(fence_server().url(database_, "clerk"));
    EXPECT_FALSE(once_of(clerk).run("k", "", add_row("r")).value().replayed);
    EXPECT_TRUE(once_of(clerk).run("k", "", add_row("r")).value().replayed);
    EXPECT_THAT(clerk.exec("DELETE FROM leasehold_once.result"), StartsWith("42501"));
    EXPECT_TRUE(bad(once_of(clerk).forget_older_than(0s), ErrorCode::unavailable));
  }
  EXPECT_EQ(user_.exec("DROP OWNED BY clerk; DROP ROLE clerk"), "");
}

TEST_F(OnceTest, EarlierVersionIsRefusedAndSaysHowToBeginAfresh) {
  ASSERT_TRUE(good(once().run("k", "p", add_row("r"))));
  ASSERT_EQ(user_.exec("CREATE OR REPLACE FUNCTION leasehold_once.version() RETURNS integer "
                       "LANGUAGE sql IMMUTABLE AS 'SELECT 1'"),
            "");
  const auto refused = install_once(user_.get());
  ASSERT_TRUE(bad(refused, ErrorCode::unavailable));
  EXPECT_THAT(refused.error().message,
              AllOf(HasSubstr("DROP SCHEMA leasehold_once CASCADE"),
                    HasSubstr("`leasehold once install`"), HasSubstr("forgets all results")));
  EXPECT_EQ(user_.ask("SELECT count(*) FROM leasehold_once.result"), "1") << "nothing was changed";
  ASSERT_EQ(user_.exec("DROP SCHEMA leasehold_once CASCADE"), "");
  EXPECT_TRUE(good(install_once(user_.get())));
}

TEST_F(OnceTest, LaterVersionIsLeftAlone) {
  ASSERT_EQ(user_.exec("CREATE OR REPLACE FUNCTION leasehold_once.version() RETURNS integer "
                       "LANGUAGE sql IMMUTABLE AS 'SELECT 9'"),
            "");
  EXPECT_TRUE(bad(install_once(user_.get()), ErrorCode::unavailable));
  EXPECT_EQ(user_.ask("SELECT leasehold_once.version()"), "9");
}

TEST_F(OnceTest, MissingOrOtherVersionIsUnavailable) {
  EXPECT_TRUE(good(install_once(user_.get()))) << "again changes nothing";
  ASSERT_EQ(user_.exec("CREATE OR REPLACE FUNCTION leasehold_once.version() RETURNS integer "
                       "LANGUAGE sql IMMUTABLE AS 'SELECT 9'"),
            "");
  EXPECT_TRUE(bad(Once::open(user_.get()), ErrorCode::unavailable));
  EXPECT_TRUE(bad(remove_once(user_.get()), ErrorCode::unavailable));
  ASSERT_EQ(user_.exec("DROP SCHEMA leasehold_once CASCADE"), "");
  const auto missing = Once::open(user_.get());
  ASSERT_TRUE(bad(missing, ErrorCode::unavailable));
  EXPECT_THAT(missing.error().message, HasSubstr("install_once()"));
  ASSERT_TRUE(good(install_once(user_.get())));
  EXPECT_TRUE(good(remove_once(user_.get())));
  EXPECT_EQ(user_.ask("SELECT count(*) FROM pg_namespace WHERE nspname = 'leasehold_once'"), "0");
}

}  // namespace
}  // namespace leasehold::postgres
