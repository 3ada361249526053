#include "leasehold/postgres/fence.h"

#include <latch>
#include <stdexcept>
#include <vector>

#include "adapters/postgres/rig/pgbouncer.h"
#include "fence_database.h"
#include "leasehold/fence_admin.h"
#include "leasehold/postgres/adapter.h"
#include "rig/output_of.h"

namespace leasehold::postgres {
namespace {

class FenceTest : public FenceDatabase {
 protected:
  void be_version(int version) const {
    ASSERT_EQ(user_.exec("CREATE OR REPLACE FUNCTION leasehold_fence.version() RETURNS integer "
                         "LANGUAGE sql IMMUTABLE AS 'SELECT " +
                         std::to_string(version) + "'"),
              "");
  }
};

Result<std::unique_ptr<FenceAdmin>> admin_of(const std::string& url) {
  auto parsed = Url::parse(url);
  if (!parsed) return fail(std::move(parsed.error()));
  return adapters().front().offers.open<FenceAdmin>(*parsed);
}

// ---- installing ----------------------------------------------------------------------------

TEST_F(FenceTest, InstallingAgainChangesNothing) {
  ASSERT_EQ(user_.exec(enter("33")), "");
  EXPECT_TRUE(good(install_fence(user_.get())));
  EXPECT_EQ(mark(), "33");
}

TEST_F(FenceTest, ManyMayInstallAtOnce) {
  ASSERT_TRUE(good(remove_fence(user_.get())));
  constexpr int count = 4;
  std::latch start(count);
  std::vector<std::future<bool>> installed;
  for (int i = 0; i < count; ++i) {
    installed.push_back(std::async(std::launch::async, [&] {
      const UserConnection mine(url());
      start.arrive_and_wait();
      return good(install_fence(mine.get())) == true;
    }));
  }
  for (auto& one : installed) EXPECT_TRUE(one.get());
}

TEST_F(FenceTest, InstallingInsideATransactionIsInvalid) {
  ASSERT_EQ(user_.exec("BEGIN"), "");
  EXPECT_TRUE(bad(install_fence(user_.get()), ErrorCode::invalid));
}

TEST_F(FenceTest, RemovingTakesEverythingWithIt) {
  ASSERT_TRUE(good(guard_table(user_.get(), "data", ledger())));
  ASSERT_TRUE(good(remove_fence(user_.get())));
  EXPECT_TRUE(good(remove_fence(user_.get()))) << "again does nothing";
  EXPECT_EQ(user_.ask("SELECT count(*) FROM pg_namespace WHERE nspname = 'leasehold_fence'"), "0");
  EXPECT_EQ(user_.exec("INSERT INTO data VALUES('free')"), "");
  const auto gone = Fence::open(user_.get(), "ledger");
  ASSERT_TRUE(bad(gone, ErrorCode::unavailable));
  EXPECT_THAT(gone.error().message, HasSubstr("leasehold fence install"));
  EXPECT_TRUE(bad(fence_marks(user_.get()), ErrorCode::unavailable));
  EXPECT_TRUE(bad(guard_table(user_.get(), "data", ledger()), ErrorCode::unavailable));
}

TEST_F(FenceTest, FenceRemovedUnderAnOpenHandleFailsClosed) {
  const Fence open = fence();
  ASSERT_TRUE(good(remove_fence(user_.get())));
  EXPECT_TRUE(bad(open.transaction(token_of(33, '1'), insert_row), ErrorCode::unavailable));
  EXPECT_EQ(rows(), "0");
}

TEST_F(FenceTest, AnotherVersionIsRefusedAndKept) {
  be_version(99);
  for (const Status& status : {install_fence(user_.get()), remove_fence(user_.get()),
                               guard_table(user_.get(), "data", ledger())}) {
    ASSERT_TRUE(bad(status, ErrorCode::unavailable));
    EXPECT_THAT(status.error().message, HasSubstr("version 99"));
  }
  EXPECT_TRUE(bad(Fence::open(user_.get(), "ledger"), ErrorCode::unavailable));
  EXPECT_EQ(user_.exec(enter("33")), "") << "nothing was removed";
}

TEST_F(FenceTest, LaterVersionNeedsAnotherProgram) {
  be_version(99);
  const auto refused = install_fence(user_.get());
  ASSERT_TRUE(bad(refused, ErrorCode::unavailable));
  EXPECT_THAT(refused.error().message, HasSubstr("use a program that is at least as new"));
  EXPECT_THAT(refused.error().message, Not(HasSubstr("DROP")));
}

TEST_F(FenceTest, EarlierVersionIsRefusedAndSaysHowToBeginAfresh) {
  ASSERT_TRUE(good(guard_table(user_.get(), "data", ledger())));
  ASSERT_EQ(user_.exec(enter("33")), "");
  be_version(1);
  for (const Status& status : {install_fence(user_.get()), remove_fence(user_.get()),
                               guard_table(user_.get(), "data", ledger())}) {
    ASSERT_TRUE(bad(status, ErrorCode::unavailable));
    EXPECT_THAT(status.error().message,
                AllOf(HasSubstr("has version 1 of"),
                      HasSubstr("to begin afresh, stop all programs that use it, DROP SCHEMA "
                                "leasehold_fence CASCADE, and install it with `leasehold fence "
                                "install`"),
                      HasSubstr("it forgets its marks")));
  }
  EXPECT_TRUE(bad(Fence::open(user_.get(), "ledger"), ErrorCode::unavailable));
  EXPECT_EQ(user_.ask("SELECT token FROM leasehold_fence.mark"), "33") << "nothing was changed";

  ASSERT_EQ(user_.exec("DROP SCHEMA leasehold_fence CASCADE"), "");
  ASSERT_TRUE(good(install_fence(user_.get())));
  EXPECT_TRUE(good(fence().transaction(token_of(32, '2'), insert_row))) << "the mark is forgotten";
  EXPECT_EQ(user_.exec("INSERT INTO data VALUES('x')"), "") << "and the guard is gone";
}

TEST_F(FenceTest, SomebodysOwnSchemaOfThatNameIsLeftAlone) {
  ASSERT_TRUE(good(remove_fence(user_.get())));
  ASSERT_EQ(user_.exec("CREATE SCHEMA leasehold_fence; CREATE TABLE leasehold_fence.mine(a int)"),
            "");
  EXPECT_TRUE(bad(install_fence(user_.get()), ErrorCode::unavailable));
  EXPECT_TRUE(bad(remove_fence(user_.get()), ErrorCode::unavailable));
  EXPECT_EQ(user_.ask("SELECT count(*) FROM leasehold_fence.mine"), "0");
}

TEST_F(FenceTest, ServersWordsComeWithoutTheStatement) {
  ASSERT_TRUE(good(remove_fence(user_.get())));
  ASSERT_EQ(user_.exec("DROP ROLE IF EXISTS guest; CREATE ROLE guest LOGIN"), "");
  {
    const UserConnection guest(fence_server().url(database_, "guest"));
    const auto refused = install_fence(guest.get());
    ASSERT_TRUE(bad(refused, ErrorCode::unavailable));
    EXPECT_THAT(refused.error().store_words, HasSubstr("permission denied for database"));
    EXPECT_THAT(refused.error().store_words, Not(HasSubstr("CREATE")));
  }
  ASSERT_EQ(user_.exec("DROP ROLE guest"), "");
}

TEST_F(FenceTest, RoleWithoutRightsIsToldWhatItNeeds) {
  ASSERT_EQ(user_.exec("DROP ROLE IF EXISTS clerk; CREATE ROLE clerk LOGIN;"
                       "GRANT INSERT, SELECT ON data TO clerk"),
            "");
  {
    const UserConnection clerk(fence_server().url(database_, "clerk"));
    const auto refused = Fence::open(clerk.get(), "ledger");
    ASSERT_TRUE(bad(refused, ErrorCode::unavailable));
    EXPECT_THAT(refused.error().message, HasSubstr("GRANT"));
    ASSERT_EQ(user_.exec("GRANT USAGE ON SCHEMA leasehold_fence TO clerk"), "");
    const auto mine = Fence::open(clerk.get(), "ledger");
    ASSERT_TRUE(good(mine));
    EXPECT_TRUE(good(mine->transaction(token_of(34, '1'), insert_row)));
    EXPECT_TRUE(bad(mine->transaction(token_of(33, '1'), insert_row), ErrorCode::fenced_out));
    EXPECT_EQ(FenceDatabase::refused(), "1");
    EXPECT_EQ(mark(), "34");
    // It passes the fence, and cannot move it otherwise.
    EXPECT_THAT(clerk.exec("UPDATE leasehold_fence.mark SET token = 1"), StartsWith("42501"));
    EXPECT_THAT(clerk.exec("SELECT leasehold_fence.reset('ledger')"), StartsWith("42501"));
  }
  EXPECT_EQ(user_.exec("DROP OWNED BY clerk; DROP ROLE clerk"), "");
}

// ---- entering ------------------------------------------------------------------------------

TEST_F(FenceTest, EnteringNeedsATransaction) {
  EXPECT_TRUE(bad(fence().enter(token_of(33, '1')), ErrorCode::invalid));
  EXPECT_EQ(mark(), "none");
}

TEST_F(FenceTest, EnteringMovesTheMarkWithTheUsersOwnTransaction) {
  const Fence mine = fence();
  ASSERT_EQ(user_.exec("BEGIN"), "");
  ASSERT_TRUE(good(mine.enter(token_of(33, '1'))));
  ASSERT_EQ(user_.exec("ROLLBACK"), "");
  EXPECT_EQ(mark(), "none");
  ASSERT_EQ(user_.exec("BEGIN"), "");
  ASSERT_TRUE(good(mine.enter(token_of(33, '1'))));
  ASSERT_EQ(user_.exec("COMMIT"), "");
  EXPECT_EQ(mark(), "33");
}

TEST_F(FenceTest, RefusedEntryEndsTheTransactionAndIsCountedAfterwards) {
  const Fence mine = fence();
  ASSERT_EQ(user_.exec(enter("34")), "");
  ASSERT_EQ(user_.exec("BEGIN"), "");
  const auto refusal = mine.enter(token_of(33, '1'));
  ASSERT_TRUE(bad(refusal, ErrorCode::fenced_out));
  EXPECT_EQ(refusal.error().refusal->offered, 33);
  EXPECT_EQ(refusal.error().refusal->mark, 34);
  EXPECT_THAT(user_.exec("INSERT INTO data VALUES('late')"), StartsWith("25P02"));
  EXPECT_TRUE(bad(mine.count_refusal(), ErrorCode::invalid)) << "it would be rolled back";
  EXPECT_EQ(user_.exec("COMMIT"), "") << "which is a rollback now";
  EXPECT_TRUE(good(mine.count_refusal()));
  EXPECT_EQ(refused(), "1");
  EXPECT_EQ(rows(), "0");
}

TEST_F(FenceTest, TransactionCommitsWorkAndMarkTogether) {
  EXPECT_TRUE(good(fence().transaction(token_of(33, '1'), insert_row)));
  EXPECT_EQ(mark(), "33");
  EXPECT_EQ(rows(), "1");
  const auto answer =
      fence().transaction(token_of(33, '1'), [](OpenTransaction&) -> Result<int> { return 42; });
  ASSERT_TRUE(good(answer));
  EXPECT_EQ(*answer, 42);
}

TEST_F(FenceTest, FailedWorkRollsBackTheMarkToo) {
  const auto answer = fence().transaction(token_of(33, '1'), [](OpenTransaction& open) -> Status {
    if (auto ok = insert_row(open); !ok) return ok;
    return fail(ErrorCode::lost, "no time left");
  });
  EXPECT_TRUE(bad(answer, ErrorCode::lost));
  EXPECT_EQ(mark(), "none");
  EXPECT_EQ(rows(), "0");
}

TEST_F(FenceTest, ExceptionRollsBackAndPassesOn) {
  EXPECT_THROW(
      (void)fence().transaction(
          token_of(33, '1'), [](OpenTransaction&) -> Status { throw std::runtime_error("out"); }),
      std::runtime_error);
  EXPECT_EQ(PQtransactionStatus(user_.get()), PQTRANS_IDLE);
  EXPECT_EQ(mark(), "none");
}

TEST_F(FenceTest, WorkThatIgnoresAFailedStatementIsTold) {
  const auto answer = fence().transaction(token_of(33, '1'), [](OpenTransaction& open) -> Status {
    PQclear(PQexec(open.handle(), "SELECT 1/0"));
    return {};
  });
  ASSERT_TRUE(bad(answer, ErrorCode::invalid));
  EXPECT_EQ(mark(), "none");
}

TEST_F(FenceTest, WorkThatEndsTheTransactionIsTold) {
  const auto answer = fence().transaction(token_of(33, '1'), [](OpenTransaction& open) -> Status {
    PQclear(PQexec(open.handle(), "COMMIT"));
    return {};
  });
  EXPECT_TRUE(bad(answer, ErrorCode::invalid));
}

TEST_F(FenceTest, BrokenDeferredConstraintRollsBack) {
  ASSERT_EQ(user_.exec("CREATE TABLE child(a int UNIQUE DEFERRABLE INITIALLY DEFERRED)"), "");
  const auto answer = fence().transaction(token_of(33, '1'), [](OpenTransaction& open) -> Status {
    PQclear(PQexec(open.handle(), "INSERT INTO child VALUES(1), (1)"));
    return {};
  });
  EXPECT_TRUE(bad(answer, ErrorCode::invalid));
  EXPECT_EQ(mark(), "none");
}

TEST_F(FenceTest, TransactionInsideATransactionIsInvalid) {
  ASSERT_EQ(user_.exec("BEGIN"), "");
  EXPECT_TRUE(bad(fence().transaction(token_of(33, '1'), insert_row), ErrorCode::invalid));
}

TEST_F(FenceTest, SessionThatIsEndedInTheMiddleChangesNothing) {
  const Fence mine = fence();
  const std::string pid = user_.ask("SELECT pg_backend_pid()");
  const UserConnection other(url());
  const auto answer = mine.transaction(token_of(33, '1'), [&](OpenTransaction& open) -> Status {
    if (auto ok = insert_row(open); !ok) return ok;
    EXPECT_EQ(other.ask("SELECT pg_terminate_backend(" + pid + ", 30000)"), "t");
    return insert_row(open);
  });
  EXPECT_FALSE(answer);
  EXPECT_EQ(other.ask("SELECT count(*) FROM data"), "0");
  EXPECT_EQ(other.ask("SELECT count(*) FROM leasehold_fence.marks()"), "0");
  EXPECT_TRUE(bad(mine.transaction(token_of(33, '1'), insert_row), ErrorCode::unavailable));
}

TEST_F(FenceTest, SessionThatIsEndedBeforeTheCommitIsNotKnown) {
  const Fence mine = fence();
  const std::string pid = user_.ask("SELECT pg_backend_pid()");
  const UserConnection other(url());
  const auto answer = mine.transaction(token_of(33, '1'), [&](OpenTransaction&) -> Status {
    EXPECT_EQ(other.ask("SELECT pg_terminate_backend(" + pid + ", 30000)"), "t");
    return {};
  });
  EXPECT_TRUE(bad(answer, ErrorCode::outcome_unknown));
}

TEST_F(FenceTest, SessionThatIsKnownToBeLostBeforeTheCommitHasCommittedNothing) {
  const Fence mine = fence();
  const std::string pid = user_.ask("SELECT pg_backend_pid()");
  const UserConnection other(url());
  const auto answer = mine.transaction(token_of(33, '1'), [&](OpenTransaction& open) -> Status {
    EXPECT_EQ(other.ask("SELECT pg_terminate_backend(" + pid + ", 30000)"), "t");
    (void)insert_row(open);
    return {};
  });
  EXPECT_TRUE(bad(answer, ErrorCode::unavailable));
}

TEST_F(FenceTest, ConnectionsThatCannotBeUsedAreInvalid) {
  EXPECT_TRUE(bad(Fence::open(nullptr, "ledger"), ErrorCode::invalid));
  const Fence mine = fence();
  ASSERT_EQ(PQsetClientEncoding(user_.get(), "LATIN1"), 0);
  EXPECT_TRUE(bad(Fence::open(user_.get(), "ledger"), ErrorCode::invalid));
  ASSERT_EQ(PQsetClientEncoding(user_.get(), "UTF8"), 0);
  ASSERT_EQ(PQenterPipelineMode(user_.get()), 1);
  EXPECT_TRUE(bad(mine.transaction(token_of(33, '1'), nothing), ErrorCode::invalid));
  ASSERT_EQ(PQexitPipelineMode(user_.get()), 1);
}

TEST_F(FenceTest, CommitIsDurableWhateverTheSessionSays) {
  ASSERT_EQ(user_.exec("SET synchronous_commit = off"), "");
  ASSERT_EQ(user_.exec("BEGIN;" + enter("33")), "");
  EXPECT_EQ(user_.ask("SHOW synchronous_commit"), "on");
  ASSERT_EQ(user_.exec("COMMIT"), "");
  EXPECT_EQ(user_.ask("SHOW synchronous_commit"), "off");
}

TEST_F(FenceTest, CommitIsDurableWhateverTheWorkSays) {
  watch_commits("data");
  const UserConnection mine(url());
  const auto transaction = [&](const std::string& sql) {
    return fence_of(mine).transaction(token_of(33, '1'), [&](OpenTransaction& open) {
      EXPECT_EQ(mine.exec(sql), "");
      return insert_row(open);
    });
  };
  for (const char* sql :
       {"SET LOCAL synchronous_commit = off", "RESET ALL", "SET synchronous_commit = local"}) {
    EXPECT_TRUE(good(transaction(sql)));
    EXPECT_EQ(commits(), "on") << sql;
  }
  EXPECT_TRUE(good(transaction("SET LOCAL synchronous_commit = remote_apply")));
  EXPECT_EQ(commits(), "remote_apply");
}

TEST_F(FenceTest, EntryIsPreparedOnceAndItsLossIsNotNoticed) {
  const auto prepared = [&] {
    return user_.ask(
        "SELECT count(*) FROM pg_prepared_statements WHERE name = 'leasehold_fence_enter_1'");
  };
  EXPECT_TRUE(good(fence().transaction(token_of(33, '1'), insert_row)));
  EXPECT_TRUE(good(fence().transaction(token_of(33, '1'), insert_row)));
  EXPECT_EQ(prepared(), "1");
  ASSERT_EQ(user_.exec("DISCARD ALL"), "");
  EXPECT_TRUE(good(fence().transaction(token_of(33, '1'), insert_row)));
  EXPECT_TRUE(good(fence().transaction(token_of(33, '1'), insert_row)));
  EXPECT_EQ(prepared(), "0");
  EXPECT_EQ(rows(), "4");
  EXPECT_TRUE(bad(fence().transaction(token_of(32, '2'), insert_row), ErrorCode::fenced_out));

  PQreset(user_.get());
  EXPECT_TRUE(good(fence().transaction(token_of(34, '3'), insert_row)));
  EXPECT_EQ(prepared(), "1");
}

TEST_F(FenceTest, RefusedEntryIsPreparedAllTheSame) {
  const UserConnection other(url());
  EXPECT_TRUE(good(fence_of(other).transaction(token_of(34, '2'), insert_row)));
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(bad(fence().transaction(token_of(33, '1'), insert_row), ErrorCode::fenced_out));
  }
  EXPECT_TRUE(good(fence().transaction(token_of(35, '3'), insert_row)));
  EXPECT_EQ(rows(), "2");
}

// As a pooler's session may have it, from another client.
TEST_F(FenceTest, EntryThatSomebodyElseHasPreparedIsNoObstacle) {
  ASSERT_EQ(user_.exec("PREPARE leasehold_fence_enter_1 AS SELECT 1"), "");
  EXPECT_TRUE(good(fence().transaction(token_of(33, '1'), insert_row)));
  EXPECT_EQ(mark(), "33");
  EXPECT_TRUE(bad(fence().transaction(token_of(32, '2'), insert_row), ErrorCode::fenced_out));
}

TEST_F(FenceTest, WorkThatEndsItsTransactionAndBeginsAnotherIsInvalid) {
  const UserConnection next(url());
  for (const char* ending :
       {"COMMIT; BEGIN", "ROLLBACK; BEGIN", "COMMIT AND CHAIN", "ROLLBACK AND CHAIN",
        "SAVEPOINT a; ROLLBACK TO a; ROLLBACK; START TRANSACTION",
        "SAVEPOINT a; ROLLBACK AND CHAIN", "PREPARE TRANSACTION 'mine'; BEGIN",
        "SELECT 1/0; COMMIT; BEGIN"}) {
    const auto done = fence().transaction(token_of(33, '1'), [&](OpenTransaction& open) -> Status {
      // One statement after the other: an error in between does not matter.
      for (std::string rest = ending; !rest.empty();) {
        const auto at = std::min(rest.find(';'), rest.size() - 1);
        exec_on(open.handle(), rest.substr(0, at + 1));
        rest.erase(0, at + 1);
      }
      return insert_row(open);
    });
    EXPECT_TRUE(bad(done, ErrorCode::invalid)) << ending;
    EXPECT_EQ(rows(), "0") << ending;
    EXPECT_EQ(PQtransactionStatus(user_.get()), PQTRANS_IDLE) << ending;
    (void)user_.exec("ROLLBACK PREPARED 'mine'");
  }
  EXPECT_TRUE(bad(fence().transaction(token_of(33, '1'),
                                      [&](OpenTransaction& open) -> Status {
                                        EXPECT_EQ(exec_on(open.handle(), "COMMIT; BEGIN"), "");
                                        EXPECT_TRUE(good(fence_of(next).transaction(
                                            token_of(34, '2'), insert_row)));
                                        return insert_row(open);
                                      }),
                  ErrorCode::invalid));
  EXPECT_EQ(rows(), "1") << "what was written after another holder had entered is gone";
}

TEST_F(FenceTest, EntryOfAnotherFenceDoesNotMakeAnotherTransactionTheFirst) {
  const Fence other = Fence::open(user_.get(), "other").value();
  const auto entering_after = [&](const char* sql) {
    return fence().transaction(token_of(33, '1'), [&](OpenTransaction& open) -> Status {
      EXPECT_EQ(exec_on(open.handle(), sql), "");
      if (auto ok = other.enter(token_of(7, '2')); !ok) return ok;
      return insert_row(open);
    });
  };
  EXPECT_TRUE(bad(entering_after("COMMIT; BEGIN"), ErrorCode::invalid));
  EXPECT_EQ(rows(), "0");
  EXPECT_TRUE(good(entering_after("SAVEPOINT a; ROLLBACK TO a")));
  EXPECT_EQ(rows(), "1");
}

TEST_F(FenceTest, WorkThatSendsWithoutReadingIsAnsweredForAllThatItSent) {
  const auto transaction = [&](const char* sql, bool row_by_row) {
    return fence().transaction(token_of(33, '1'), [&](OpenTransaction& open) -> Status {
      EXPECT_EQ(PQsendQuery(open.handle(), sql), 1);
      EXPECT_EQ(row_by_row ? PQsetSingleRowMode(open.handle()) : 1, 1);
      return {};
    });
  };
  for (const bool row_by_row : {false, true}) {
    for (const char* sql : {"COMMIT; BEGIN; INSERT INTO data VALUES('stale')",
                            "ROLLBACK; SELECT 1; BEGIN; INSERT INTO data VALUES('stale')", "COMMIT",
                            "COMMIT; BEGIN; COPY data FROM STDIN", "COPY data FROM STDIN",
                            "INSERT INTO data VALUES('x'); SELECT 1/0"}) {
      EXPECT_TRUE(bad(transaction(sql, row_by_row), ErrorCode::invalid)) << sql;
      EXPECT_EQ(PQtransactionStatus(user_.get()), PQTRANS_IDLE) << sql;
      EXPECT_EQ(rows(), "0") << sql;
    }
    EXPECT_TRUE(good(
        transaction("INSERT INTO data VALUES('x'); SELECT 1; COPY data TO STDOUT", row_by_row)));
    EXPECT_EQ(rows(), "1");
    ASSERT_EQ(user_.exec("DELETE FROM data"), "");
  }
}

TEST_F(FenceTest, SavepointsAndWarningsOfTheWorkDoNotEndIt) {
  for (const char* sql :
       {"SAVEPOINT a; INSERT INTO data VALUES('y'); ROLLBACK TO a; RELEASE a", "BEGIN"}) {
    EXPECT_TRUE(good(fence().transaction(token_of(33, '1'), [&](OpenTransaction& open) -> Status {
      EXPECT_EQ(exec_on(open.handle(), sql), "");
      return insert_row(open);
    }))) << sql;
  }
  EXPECT_EQ(rows(), "2");
}

TEST_F(FenceTest, WorkThatLeavesPipelineModeOnIsInvalid) {
  for (const bool fails : {false, true}) {
    const auto done = fence().transaction(token_of(33, '1'), [&](OpenTransaction& open) -> Status {
      EXPECT_EQ(PQenterPipelineMode(open.handle()), 1);
      EXPECT_EQ(PQsendQueryParams(open.handle(), "INSERT INTO data VALUES('x')", 0, nullptr,
                                  nullptr, nullptr, nullptr, 0),
                1);
      if (fails) return fail(ErrorCode::busy, "enough");
      EXPECT_EQ(PQpipelineSync(open.handle()), 1);
      return {};
    });
    EXPECT_TRUE(bad(done, fails ? ErrorCode::busy : ErrorCode::invalid));
    EXPECT_EQ(PQpipelineStatus(user_.get()), PQ_PIPELINE_OFF);
    EXPECT_EQ(PQtransactionStatus(user_.get()), PQTRANS_IDLE);
    EXPECT_EQ(rows(), "0");
  }
}

TEST_F(FenceTest, CopyInPipelineModeDoesNotKeepTheCallerForEver) {
  for (const bool synced : {false, true}) {
    for (const char* sql : {"COPY data FROM STDIN", "COPY data TO STDOUT"}) {
      const UserConnection mine(url());
      const auto done =
          fence_of(mine).transaction(token_of(33, '1'), [&](OpenTransaction& open) -> Status {
            EXPECT_EQ(PQenterPipelineMode(open.handle()), 1);
            EXPECT_EQ(
                PQsendQueryParams(open.handle(), sql, 0, nullptr, nullptr, nullptr, nullptr, 0), 1);
            EXPECT_EQ(synced ? PQpipelineSync(open.handle()) : 1, 1);
            return {};
          });
      EXPECT_TRUE(bad(done, ErrorCode::invalid)) << sql;
      EXPECT_EQ(PQstatus(mine.get()), CONNECTION_BAD) << "else its transaction stays open";
    }
  }
  EXPECT_EQ(rows(), "0");
}

TEST_F(FenceTest, WorksThroughAPoolerInTransactionMode) {
  const leasehold::rig::Pgbouncer pooler(fence_server());
  const UserConnection pooled(pooler.url(database_));
  EXPECT_TRUE(good(fence_of(pooled).transaction(token_of(34, '2'), insert_row)));
  const auto late = fence_of(pooled).transaction(token_of(33, '1'), insert_row);
  EXPECT_TRUE(bad(late, ErrorCode::fenced_out));
  EXPECT_EQ(rows(), "1");
  EXPECT_EQ(refused(), "1");
}

// Statements of our names, with another text, in a session that the pooler may give us.
TEST_F(FenceTest, StatementsThatOthersPreparedBehindAPoolerAreNotTrusted) {
  const leasehold::rig::Pgbouncer pooler(fence_server());
  const UserConnection mine(pooler.url(database_));
  const UserConnection other(pooler.url(database_));
  const UserConnection third(pooler.url(database_));
  ASSERT_TRUE(good(fence_of(mine).transaction(token_of(34, '2'), nothing)));
  ASSERT_TRUE(good(fence_of(mine).transaction(token_of(34, '2'), nothing)));
  // One session is in use, so that the other gets another one.
  ASSERT_EQ(third.exec("BEGIN"), "");
  for (const char* name :
       {"leasehold_fence_enter_1(text, text, text, text, text)",
        "leasehold_fence_enter_again_1(text, text, text, text)", "leasehold_begin_1"}) {
    ASSERT_EQ(other.exec(std::string("DEALLOCATE ALL; PREPARE ") + name + " AS SELECT 1"), "");
    EXPECT_TRUE(
        bad(fence_of(mine).transaction(token_of(33, '1'), insert_row), ErrorCode::fenced_out))
        << name;
  }
  EXPECT_EQ(third.exec("ROLLBACK"), "");
  EXPECT_EQ(rows(), "0");
}

// ---- two at once ---------------------------------------------------------------------------

class IsolationTest : public FenceTest, public ::testing::WithParamInterface<const char*> {
 protected:
  bool reads_committed() const { return std::string(GetParam()) == "read committed"; }
  std::unique_ptr<UserConnection> connect(const std::string& isolation = GetParam()) const {
    auto user = std::make_unique<UserConnection>(url());
    EXPECT_EQ(user->exec("SET default_transaction_isolation = '" + isolation + "'"), "");
    return user;
  }

  // `first` is inside and has inserted a row when `second` begins; then `first` commits. Answers
  // with what the second one got, and how many rows it saw.
  struct Second {
    Status status;
    std::string seen;
  };
  Second second_after_first(const Token& first, const Token& second, const std::string& end,
                            const std::string& isolation_of_first = GetParam()) {
    const auto one = connect(isolation_of_first);
    const auto two = connect();
    EXPECT_EQ(one->exec("BEGIN"), "");
    EXPECT_TRUE(good(fence_of(*one).enter(first)));
    EXPECT_EQ(one->exec("INSERT INTO data VALUES('first')"), "");
    Second answer{{}, "not run"};
    auto waiting = std::async(std::launch::async, [&] {
      answer.status = fence_of(*two).transaction(second, [&](OpenTransaction& open) {
        answer.seen = two->ask("SELECT count(*) FROM data");
        return insert_row(open);
      });
    });
    await_waiter();
    EXPECT_EQ(one->exec(end), "");
    waiting.get();
    return answer;
  }
};

TEST_P(IsolationTest, SecondSeesWhatTheFirstWroteOrMustBeginAgain) {
  ASSERT_EQ(user_.exec(enter("1")), "");
  const Second second = second_after_first(token_of(33, '1'), token_of(34, '2'), "COMMIT");
  if (reads_committed()) {
    EXPECT_TRUE(good(second.status));
    EXPECT_EQ(second.seen, "1");
    EXPECT_EQ(mark(), "34");
    return;
  }
  EXPECT_TRUE(bad(second.status, ErrorCode::unavailable));
  EXPECT_EQ(second.seen, "not run");
  EXPECT_EQ(mark(), "33");
  EXPECT_EQ(rows(), "1");
}

TEST_P(IsolationTest, SameHolderInTwoSessionsSeesItsOwnWriteOrMustBeginAgain) {
  ASSERT_EQ(user_.exec(enter("33")), "");
  const Second second = second_after_first(token_of(33, '1'), token_of(33, '1'), "COMMIT");
  EXPECT_EQ(second.status.has_value(), reads_committed());
  EXPECT_EQ(second.seen, reads_committed() ? "1" : "not run");
}

// The first is inside already and changes no mark; the second has taken its snapshot before.
TEST_P(IsolationTest, AfterAFirstThatReadsCommittedItIsTheSame) {
  ASSERT_EQ(user_.exec(enter("33")), "");
  const Second second =
      second_after_first(token_of(33, '1'), token_of(34, '2'), "COMMIT", "read committed");
  EXPECT_EQ(second.status.has_value(), reads_committed());
  EXPECT_EQ(second.seen, reads_committed() ? "1" : "not run");
}

TEST_P(IsolationTest, StaleSecondNeverGetsIn) {
  ASSERT_EQ(user_.exec(enter("1")), "");
  const Second second = second_after_first(token_of(34, '2'), token_of(33, '1'), "COMMIT");
  EXPECT_TRUE(
      bad(second.status, reads_committed() ? ErrorCode::fenced_out : ErrorCode::unavailable));
  EXPECT_EQ(second.seen, "not run");
  const auto again = fence_of(*connect()).transaction(token_of(33, '1'), insert_row);
  EXPECT_TRUE(bad(again, ErrorCode::fenced_out));
  EXPECT_EQ(mark(), "34");
  EXPECT_EQ(rows(), "1");
}

TEST_P(IsolationTest, FirstThatRollsBackLetsTheSecondIn) {
  ASSERT_EQ(user_.exec(enter("1")), "");
  const Second second = second_after_first(token_of(34, '2'), token_of(33, '1'), "ROLLBACK");
  EXPECT_TRUE(good(second.status));
  EXPECT_EQ(second.seen, "0");
  EXPECT_EQ(mark(), "33");
}

TEST_P(IsolationTest, NewResourceIsEnteredByOneAfterTheOther) {
  const Second second = second_after_first(token_of(34, '2'), token_of(33, '1'), "COMMIT");
  EXPECT_TRUE(
      bad(second.status, reads_committed() ? ErrorCode::fenced_out : ErrorCode::unavailable));
  EXPECT_EQ(mark(), "34");
  EXPECT_EQ(rows(), "1");
}

TEST_P(IsolationTest, NewResourceOfTwoLineagesBelongsToOneOfThem) {
  const Second second = second_after_first(token_of(3, '1'), token_of(900, '2', 'b'), "COMMIT");
  EXPECT_TRUE(
      bad(second.status, reads_committed() ? ErrorCode::fenced_out : ErrorCode::unavailable));
  EXPECT_EQ(mark(), "3");
}

INSTANTIATE_TEST_SUITE_P(Postgres, IsolationTest,
                         ::testing::Values("read committed", "repeatable read", "serializable"),
                         [](const auto& one) {
                           std::string name = one.param;
                           std::erase(name, ' ');
                           return name;
                         });

TEST_F(FenceTest, DifferentResourcesDoNotMeet) {
  const UserConnection other(url());
  ASSERT_EQ(user_.exec("BEGIN;" + enter("33")), "");
  ASSERT_EQ(other.exec("SET lock_timeout = '10s'"), "");
  EXPECT_EQ(other.exec(enter("1", "'other'")), "");
}

TEST_F(FenceTest, EntryThatCannotBeHadInTimeIsUnavailable) {
  const UserConnection other(url());
  const Fence mine = fence_of(other);
  ASSERT_EQ(user_.exec("BEGIN;" + enter("33")), "");
  ASSERT_EQ(other.exec("SET lock_timeout = '50ms'"), "");
  const auto busy = mine.transaction(token_of(34, '2'), insert_row);
  ASSERT_TRUE(bad(busy, ErrorCode::unavailable));
  EXPECT_THAT(busy.error().message, HasSubstr("stayed inside"));
}

TEST_F(FenceTest, DeadlockOfTwoResourcesIsUnavailable) {
  const UserConnection other(url());
  const UserConnection third(url());
  const Fence second = Fence::open(third.get(), "b").value();
  ASSERT_EQ(third.exec("SET deadlock_timeout = '20ms'; BEGIN;" + enter("33", "'a'")), "");
  ASSERT_EQ(other.exec("SET deadlock_timeout = '1h'; BEGIN;" + enter("33", "'b'")), "");
  auto waiting = std::async(std::launch::async, [&] { return other.exec(enter("33", "'a'")); });
  await_waiter();
  const auto mine = second.enter(token_of(33, '1'));
  ASSERT_TRUE(bad(mine, ErrorCode::unavailable));
  EXPECT_THAT(mine.error().message, HasSubstr("begin again"));
  EXPECT_EQ(waiting.get(), "");
}

// ---- savepoints ----------------------------------------------------------------------------

TEST_F(FenceTest, RollingBackToASavepointUndoesTheEntry) {
  ASSERT_TRUE(good(guard_table(user_.get(), "data", ledger())));
  ASSERT_EQ(user_.exec("BEGIN; SAVEPOINT a;" + enter("33")), "");
  ASSERT_EQ(user_.exec("SAVEPOINT b; INSERT INTO data VALUES('inside'); ROLLBACK TO b"), "");
  EXPECT_EQ(user_.exec("INSERT INTO data VALUES('still inside')"), "");
  ASSERT_EQ(user_.exec("ROLLBACK TO a; SAVEPOINT c"), "");
  EXPECT_THAT(user_.exec("INSERT INTO data VALUES('outside')"), StartsWith("LH002"));
  ASSERT_EQ(user_.exec("ROLLBACK TO c; COMMIT"), "");
  EXPECT_EQ(mark(), "none");
  EXPECT_EQ(rows(), "0");
}

TEST_F(FenceTest, EntryInAReleasedSavepointCounts) {
  ASSERT_TRUE(good(guard_table(user_.get(), "data", ledger())));
  EXPECT_EQ(user_.exec("BEGIN; SAVEPOINT a;" + enter("33") +
                       "; RELEASE a; INSERT INTO data VALUES('inside'); COMMIT"),
            "");
  EXPECT_EQ(rows(), "1");
}

TEST_F(FenceTest, RefusalInASavepointMustNotBeSteppedOver) {
  ASSERT_TRUE(good(guard_table(user_.get(), "data", ledger())));
  ASSERT_EQ(user_.exec(enter("34")), "");
  ASSERT_EQ(user_.exec("BEGIN; SAVEPOINT a"), "");
  EXPECT_THAT(user_.exec(enter("33")), StartsWith("LH001"));
  ASSERT_EQ(user_.exec("ROLLBACK TO a"), "");
  EXPECT_THAT(user_.exec("INSERT INTO data VALUES('zombie')"), StartsWith("LH002"));
}

// ---- two phases ----------------------------------------------------------------------------

TEST_F(FenceTest, PreparedTransactionStaysInsideAlsoWhenTheServerDies) {
  ASSERT_TRUE(good(guard_table(user_.get(), "data", ledger())));
  {
    const UserConnection mine(url());
    ASSERT_EQ(
        mine.exec("BEGIN;" + enter("33") +
                  "; INSERT INTO data VALUES('prepared'); PREPARE TRANSACTION '" + database_ + "'"),
        "");
    EXPECT_THAT(mine.exec("INSERT INTO data VALUES('outside')"), StartsWith("LH002"));
  }
  fence_server().kill();
  fence_server().start();
  const UserConnection next(url());
  ASSERT_EQ(next.exec("SET lock_timeout = '50ms'"), "");
  EXPECT_TRUE(bad(fence_of(next).transaction(token_of(34, '2'), nothing), ErrorCode::unavailable));
  ASSERT_EQ(next.exec("COMMIT PREPARED '" + database_ + "'"), "");
  EXPECT_EQ(next.ask("SELECT count(*) FROM data"), "1");
  EXPECT_TRUE(bad(fence_of(next).transaction(token_of(32, '2'), nothing), ErrorCode::fenced_out));
  EXPECT_TRUE(good(fence_of(next).transaction(token_of(34, '2'), insert_row)));
  EXPECT_EQ(next.ask("SELECT count(*) FROM data"), "2");
}

// ---- plain SQL -----------------------------------------------------------------------------

TEST_F(FenceTest, PlainSqlObeysTheSameRules) {
  ASSERT_EQ(user_.exec(enter("33")), "");
  EXPECT_THAT(user_.exec(enter("32")),
              "LH001 leasehold: fenced_out: resource 'ledger' refused token 32: its mark is 33, so "
              "another holder has entered since");
  EXPECT_THAT(user_.exec(enter("33", "'ledger'", "'" + std::string(32, '2') + "'")),
              StartsWith("LH001"));
  EXPECT_THAT(user_.exec(enter("99", "'ledger'", "'" + std::string(32, '1') + "'",
                               "'" + std::string(32, 'b') + "/invoice/1234'")),
              StartsWith("LH001"));
  EXPECT_EQ(user_.exec(enter("33")), "");
  EXPECT_THAT(user_.exec(enter("34", "'ledger'", "'nonsense'")), StartsWith("LH003"));
  EXPECT_EQ(user_.exec(enter("9223372036854775807")), "");
}

TEST_F(FenceTest, WrongInputIsRefusedAndWritesNothing) {
  const std::string request = "'" + std::string(32, '1') + "'";
  const std::string lineage = "'" + std::string(32, 'a') + "/invoice/1234'";
  struct Wrong {
    std::string sql;
    const char* says;
  };
  const std::vector<Wrong> table = {
      {enter("'many'"), "22P02 invalid input syntax for type bigint: \"many\""},
      {enter("0"), "LH003 leasehold: invalid: token must be"},
      {enter("-5"), "LH003 leasehold: invalid: token must be"},
      {enter("NULL"), "LH003 leasehold: invalid: token must be"},
      {enter("'9223372036854775808'"), "22003"},
      {enter("9223372036854775808"), "42883"},
      {enter("1.0"), "42883"},
      {enter("1", "''"), "LH003 leasehold: invalid: resource must be"},
      {enter("1", "NULL"), "LH003 leasehold: invalid: resource must be"},
      {enter("1", "repeat('x', 513)"), "LH003 leasehold: invalid: resource must be"},
      {enter("1", "repeat('ж', 257)"), "LH003 leasehold: invalid: resource must be"},
      {enter("1", "E'a\\nb'"), "LH003 leasehold: invalid: resource must be"},
      {enter("1", "U&'\\0085'"), "LH003 leasehold: invalid: resource must be"},
      {enter("1", "U&'a\\2028'"), "LH003 leasehold: invalid: resource must be"},
      {enter("1", "'ledger'", "NULL"), "LH003 leasehold: invalid: request must be"},
      {enter("1", "'ledger'", "'" + std::string(32, 'A') + "'"),
       "LH003 leasehold: invalid: request must be"},
      {enter("1", "'ledger'", "'" + std::string(31, '1') + "'"),
       "LH003 leasehold: invalid: request must be"},
      {enter("1", "'ledger'", "E'" + std::string(32, '1') + "\\n'"),
       "LH003 leasehold: invalid: request must be"},
      {enter("1", "'ledger'", request, "NULL"), "LH003 leasehold: invalid: lineage must be"},
      {enter("1", "'ledger'", request, "'x/y'"), "LH003 leasehold: invalid: lineage must be"},
      {enter("1", "'ledger'", request, "'" + std::string(32, 'a') + "/'"),
       "LH003 leasehold: invalid: lineage must be"},
      {enter("1", "'ledger'", request, "'" + std::string(32, 'a') + "'"),
       "LH003 leasehold: invalid: lineage must be"},
      {"SELECT leasehold_fence.enter('ledger')", "42883"},
      {"SELECT leasehold_fence.count_refusal('')", "LH003"},
      {"SELECT leasehold_fence.claim('x', 'me')", "LH003"},
      {"SELECT leasehold_fence.adopt('x', 'y', 1)", "LH003"},
      {"SELECT leasehold_fence.adopt('x', " + lineage + ", 0)", "LH003"},
      {"SELECT leasehold_fence.reset('x')", "LH003"},
  };
  for (const Wrong& wrong : table)
    EXPECT_THAT(user_.exec(wrong.sql), StartsWith(wrong.says)) << wrong.sql;
  EXPECT_EQ(user_.ask("SELECT count(*) FROM leasehold_fence.marks()"), "0");
}

TEST_F(FenceTest, MarksCannotBeDeletedOrLoweredByAccident) {
  ASSERT_EQ(user_.exec(enter("33")), "");
  EXPECT_THAT(user_.exec("DELETE FROM leasehold_fence.mark"), StartsWith("LH003"));
  EXPECT_THAT(user_.exec("TRUNCATE leasehold_fence.mark"), StartsWith("LH003"));
  EXPECT_THAT(user_.exec("UPDATE leasehold_fence.mark SET token = 32"), StartsWith("LH003"));
  EXPECT_THAT(user_.exec("UPDATE leasehold_fence.mark SET resource = 'x'"), StartsWith("LH003"));
  EXPECT_EQ(mark(), "33");
  ASSERT_EQ(user_.exec("SELECT leasehold_fence.adopt(resource, lineage, 40) FROM "
                       "leasehold_fence.marks()"),
            "");
  EXPECT_THAT(user_.exec("UPDATE leasehold_fence.mark SET least = 39"), StartsWith("LH003"));
}

TEST_F(FenceTest, MarksThatAreNotKeptAreToldAndKeptAgain) {
  ASSERT_EQ(user_.exec(enter("33")), "");
  ASSERT_EQ(user_.exec("CREATE FUNCTION harmless() RETURNS trigger LANGUAGE plpgsql AS"
                       " 'BEGIN RETURN NEW; END'"),
            "");
  const auto admin = adapters().front().offers.open<FenceAdmin>(Url::parse(url()).value()).value();
  const std::string table = "leasehold_fence.mark";
  for (const std::string& damage :
       {"ALTER TABLE " + table + " DISABLE TRIGGER ALL", "DROP TRIGGER rise ON " + table,
        "ALTER TABLE " + table + " ENABLE REPLICA TRIGGER keep",
        "DROP TRIGGER stay ON " + table + "; CREATE TRIGGER stay BEFORE UPDATE OF resource ON " +
            table + " FOR EACH ROW WHEN (true) EXECUTE FUNCTION harmless()"}) {
    EXPECT_TRUE(good(admin->check_marks()));
    ASSERT_EQ(user_.exec(damage), "");
    EXPECT_TRUE(bad(admin->check_marks(), ErrorCode::unavailable)) << damage;
    ASSERT_TRUE(good(install_fence(user_.get())));
    for (const char* sql : {"DELETE FROM leasehold_fence.mark", "TRUNCATE leasehold_fence.mark",
                            "UPDATE leasehold_fence.mark SET token = 32",
                            "UPDATE leasehold_fence.mark SET resource = 'x'"}) {
      EXPECT_EQ(user_.exec(std::string("BEGIN;") + sql).substr(0, 5), "LH003") << damage;
      ASSERT_EQ(user_.exec("ROLLBACK"), "");
    }
  }
}

TEST_F(FenceTest, SettingsOfTheSessionDoNotOpenTheFence) {
  ASSERT_EQ(user_.exec(enter("33")), "");
  ASSERT_EQ(user_.exec("CREATE TEMP TABLE mark(resource text, token bigint);"
                       "CREATE FUNCTION public.now() RETURNS timestamptz LANGUAGE sql AS "
                       "'SELECT clock_timestamp()';"
                       "SET search_path = pg_temp, public, pg_catalog;"
                       "SET standard_conforming_strings = off"),
            "");
  EXPECT_THAT(user_.exec(enter("32")), StartsWith("LH001"));
  EXPECT_EQ(user_.exec(enter("34")), "");
}

// As a shell script would; the commands are those of docs/fence-postgres.md.
TEST_F(FenceTest, PsqlPassesTheSameFence) {
  const auto pay = [&](const std::string& token) {
    const std::string script = "psql -X -q -v ON_ERROR_STOP=1 -v VERBOSITY=verbose '" + url() +
                               "' -v t=" + token + " -v l=" + std::string(32, 'a') +
                               "/invoice/1234 -v r=" + std::string(32, '1') +
                               " >/dev/null 2>said <<'SQL'\n"
                               "BEGIN;\n"
                               "SELECT leasehold_fence.enter('ledger', :'t', :'l', :'r');\n"
                               "INSERT INTO data VALUES('paid');\n"
                               "COMMIT;\n"
                               "SQL\n"
                               "status=$?\n"
                               "if grep -q LH001 said; then psql -X -q -o /dev/null '" +
                               url() +
                               "' -c \"SELECT leasehold_fence.count_refusal('ledger')\"; fi\n"
                               "echo $status";
    const leasehold::rig::TempFolder folder;
    return leasehold::rig::output_of({"sh", "-c", "cd " + folder.path().string() + "\n" + script});
  };
  EXPECT_THAT(pay("34"), StartsWith("0"));
  EXPECT_THAT(pay("33"), StartsWith("3"));
  EXPECT_THAT(pay("many"), StartsWith("3"));
  EXPECT_EQ(rows(), "1");
  EXPECT_EQ(refused(), "1");
  EXPECT_EQ(mark(), "34");
}

// ---- the operator --------------------------------------------------------------------------

TEST_F(FenceTest, OperatorSeesAdoptsAndResets) {
  const auto admin = admin_of(url());
  ASSERT_TRUE(good(admin));
  ASSERT_TRUE(good((*admin)->install()));
  ASSERT_EQ(user_.exec(enter("33")), "");
  const auto marks = (*admin)->marks();
  ASSERT_TRUE(good(marks));
  ASSERT_EQ(marks->size(), 1u);
  EXPECT_EQ(marks->at(0).mark, token_of(33, '1'));

  ASSERT_TRUE(good((*admin)->adopt(ledger(), lineage_of('b'), TokenNumber::of(3).value())));
  EXPECT_THAT(user_.exec(enter("34")), StartsWith("LH001"));
  EXPECT_TRUE(good(fence().transaction(token_of(3, '1', 'b'), nothing)));

  EXPECT_TRUE(bad(fence().transaction(token_of(2, '1', 'b'), nothing), ErrorCode::fenced_out));
  ASSERT_TRUE(good((*admin)->reset(ledger())));
  const auto blank = fence().mark();
  ASSERT_TRUE(good(blank));
  ASSERT_TRUE(blank->has_value());
  EXPECT_FALSE((*blank)->mark || (*blank)->lineage);
  EXPECT_EQ((*blank)->refused, 1) << "the alarm is not forgotten";
  EXPECT_EQ(user_.exec(enter("1")), "");
  EXPECT_TRUE(bad((*admin)->reset(ResourceName::parse("unknown").value()), ErrorCode::invalid));
}

TEST_F(FenceTest, WrongUrlsAreInvalidAndServersThatAreNotThereUnavailable) {
  for (const char* options : {"?schema=x", "?mode=rows", "?nonsense=1"}) {
    EXPECT_TRUE(bad(admin_of(url() + options), ErrorCode::invalid)) << options;
  }
  EXPECT_TRUE(bad(admin_of("postgres://127.0.0.1:1"), ErrorCode::invalid));
  const auto nobody = admin_of("postgres://postgres:hunter2@127.0.0.1:1/shop");
  ASSERT_TRUE(bad(nobody, ErrorCode::unavailable));
  EXPECT_THAT(to_string(nobody.error()), ::testing::Not(HasSubstr("hunter2")));
  EXPECT_THAT(nobody.error().address, HasSubstr("127.0.0.1:1"));
  const auto missing = admin_of(fence_server().url("no_such_database"));
  ASSERT_TRUE(bad(missing, ErrorCode::unavailable));
  EXPECT_THAT(to_string(missing.error()), HasSubstr("no_such_database"));
}

}  // namespace
}  // namespace leasehold::postgres
