// A holder that has entered on its connection comes in again by a plain UPDATE. Whatever has
// happened to the mark meanwhile, it must be as if it had called the function.
#include <memory>

#include "adapters/postgres/rig/pgbouncer.h"
#include "fence_database.h"

namespace leasehold::postgres {
namespace {

class EnterAgain : public FenceDatabase {
 protected:
  EnterAgain() { EXPECT_TRUE(good(fence().transaction(holder_, insert_row))); }

  Status again() const { return fence().transaction(holder_, insert_row); }
  void break_the_function() const {
    ASSERT_EQ(user_.exec(
                  "CREATE OR REPLACE FUNCTION leasehold_fence.enter(resource text, token "
                  "bigint, lineage text, request text, single_entry boolean DEFAULT false) RETURNS "
                  "void LANGUAGE plpgsql AS 'BEGIN RAISE ''called''; END'"),
              "");
  }
  const Token holder_ = token_of(33, '1');
};

TEST_F(EnterAgain, IsOneStatementAndNoFunction) {
  break_the_function();
  EXPECT_TRUE(good(again()));
  EXPECT_EQ(rows(), "2");
  EXPECT_TRUE(bad(fence().transaction(token_of(34, '1'), insert_row), ErrorCode::unavailable));
}

TEST_F(EnterAgain, IsRefusedOnceAnotherHasEntered) {
  const UserConnection other(url());
  ASSERT_TRUE(good(fence_of(other).transaction(token_of(34, '2'), nothing)));
  const auto late = again();
  ASSERT_TRUE(bad(late, ErrorCode::fenced_out));
  EXPECT_EQ(late.error().refusal->mark, 34);
  EXPECT_EQ(rows(), "1");
  EXPECT_EQ(refused(), "1");
  EXPECT_EQ(PQtransactionStatus(user_.get()), PQTRANS_IDLE);
}

TEST_F(EnterAgain, IsJudgedByItsOwnResource) {
  const Fence elsewhere = Fence::open(user_.get(), "elsewhere").value();
  ASSERT_TRUE(good(elsewhere.transaction(holder_, nothing)));
  ASSERT_TRUE(good(again()));
  const UserConnection other(url());
  ASSERT_TRUE(good(fence_of(other).transaction(token_of(34, '2'), nothing)));
  EXPECT_TRUE(bad(again(), ErrorCode::fenced_out));
  EXPECT_TRUE(good(elsewhere.transaction(holder_, nothing)));
}

TEST_F(EnterAgain, WithAnotherNumberIsJudgedByIt) {
  EXPECT_TRUE(bad(fence().transaction(token_of(32, '1'), insert_row), ErrorCode::fenced_out));
  EXPECT_TRUE(good(fence().transaction(token_of(34, '1'), insert_row)));
  EXPECT_EQ(mark(), "34");
  EXPECT_TRUE(bad(again(), ErrorCode::fenced_out));
}

TEST_F(EnterAgain, WithAnotherLineageIsRefused) {
  EXPECT_TRUE(bad(fence().transaction(token_of(33, '1', 'b'), insert_row), ErrorCode::fenced_out));
  EXPECT_EQ(rows(), "1");
}

TEST_F(EnterAgain, IsRefusedIfTheNumberIsAnothersNow) {
  ASSERT_EQ(user_.exec("SELECT leasehold_fence.reset('ledger')"), "");
  const UserConnection other(url());
  ASSERT_TRUE(good(fence_of(other).transaction(token_of(33, '2'), nothing)));
  EXPECT_TRUE(bad(again(), ErrorCode::fenced_out));
  EXPECT_EQ(rows(), "1");
}

TEST_F(EnterAgain, IsRefusedInOnceMode) {
  EXPECT_TRUE(bad(fence().transaction(holder_, insert_row, Entry::single), ErrorCode::fenced_out));
  EXPECT_EQ(rows(), "1");
}

TEST_F(EnterAgain, AfterAResetIsAFirstEntry) {
  ASSERT_EQ(user_.exec("SELECT leasehold_fence.reset('ledger')"), "");
  EXPECT_TRUE(good(again()));
  EXPECT_EQ(mark(), "33");
}

TEST_F(EnterAgain, DoesNotPassAClaim) {
  ASSERT_EQ(user_.exec("SELECT leasehold_fence.reset('ledger')"), "");
  ASSERT_EQ(user_.exec("SELECT leasehold_fence.claim('ledger', '" + std::string(32, '2') + "')"),
            "");
  EXPECT_TRUE(bad(again(), ErrorCode::invalid));
  EXPECT_EQ(rows(), "1");
}

TEST_F(EnterAgain, CommitsDurablyWhateverTheSessionSays) {
  ASSERT_EQ(user_.exec("SET synchronous_commit = off"), "");
  std::string inside;
  EXPECT_TRUE(good(fence().transaction(holder_, [&](OpenTransaction&) -> Status {
    inside = user_.ask("SHOW synchronous_commit");
    return {};
  })));
  EXPECT_EQ(inside, "on");
}

TEST_F(EnterAgain, WaitsForTheStandbyToApplyIfTheSessionSaysSo) {
  break_the_function();
  ASSERT_EQ(user_.exec("SET synchronous_commit = remote_apply"), "");
  std::string inside;
  EXPECT_TRUE(good(fence().transaction(holder_, [&](OpenTransaction&) -> Status {
    inside = user_.ask("SHOW synchronous_commit");
    return {};
  })));
  EXPECT_EQ(inside, "remote_apply");
}

TEST_F(EnterAgain, OpensAGuardedTableToThisTransactionOnly) {
  ASSERT_TRUE(good(guard_table(user_.get(), "data", ledger())));
  EXPECT_TRUE(good(again()));
  EXPECT_EQ(rows(), "2");
  EXPECT_THAT(user_.exec("INSERT INTO data VALUES('x')"), StartsWith("LH002"));
}

TEST_F(EnterAgain, NeedsNoRightBesidesThatToTheSchema) {
  ASSERT_EQ(user_.exec("DROP ROLE IF EXISTS porter; CREATE ROLE porter LOGIN;"
                       "GRANT INSERT, SELECT ON data TO porter;"
                       "GRANT USAGE ON SCHEMA leasehold_fence TO porter"),
            "");
  {
    const UserConnection porter(fence_server().url(database_, "porter"));
    const Fence fence = fence_of(porter);
    EXPECT_TRUE(good(fence.transaction(holder_, insert_row)));
    EXPECT_TRUE(good(fence.transaction(holder_, insert_row)));
    EXPECT_THAT(porter.exec("UPDATE leasehold_fence.entrance SET token = 1"), StartsWith("42501"));
    EXPECT_THAT(porter.exec("DELETE FROM leasehold_fence.entrance"), StartsWith("42501"));
  }
  EXPECT_EQ(user_.exec("DROP OWNED BY porter; DROP ROLE porter"), "");
}

// As where rights were not restored with the tables.
TEST_F(EnterAgain, WithoutTheViewsRightsGoesByTheFunction) {
  ASSERT_EQ(user_.exec("DROP ROLE IF EXISTS usher; CREATE ROLE usher LOGIN;"
                       "GRANT INSERT, SELECT ON data TO usher;"
                       "GRANT USAGE ON SCHEMA leasehold_fence TO usher;"
                       "REVOKE ALL ON leasehold_fence.entrance FROM PUBLIC"),
            "");
  {
    const UserConnection usher(fence_server().url(database_, "usher"));
    const Fence mine = fence_of(usher);
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(good(mine.transaction(holder_, insert_row)));
    ASSERT_TRUE(good(fence().transaction(token_of(34, '2'), nothing)));
    EXPECT_TRUE(bad(mine.transaction(holder_, insert_row), ErrorCode::fenced_out));
  }
  EXPECT_EQ(user_.exec("DROP OWNED BY usher; DROP ROLE usher"), "");
}

TEST_F(EnterAgain, RightsTakenFromEverybodyStayTaken) {
  ASSERT_TRUE(good(remove_fence(user_.get())));
  ASSERT_EQ(user_.exec("ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC"), "");
  ASSERT_TRUE(good(install_fence(user_.get())));
  EXPECT_EQ(user_.ask("SELECT has_any_column_privilege('public', 'leasehold_fence.entrance', "
                      "'UPDATE')"),
            "f");
}

TEST_F(EnterAgain, IsNotMisledByTheSearchPath) {
  ASSERT_EQ(user_.exec("CREATE FUNCTION public.same(a bigint, b bigint) RETURNS boolean LANGUAGE "
                       "sql AS 'SELECT true';"
                       "CREATE OPERATOR public.= (LEFTARG = bigint, RIGHTARG = bigint, "
                       "FUNCTION = public.same);"
                       "SET search_path = public, pg_catalog"),
            "");
  const UserConnection other(url());
  ASSERT_TRUE(good(fence_of(other).transaction(token_of(34, '1'), nothing)));
  EXPECT_TRUE(bad(again(), ErrorCode::fenced_out));
}

TEST_F(EnterAgain, WorksThroughAPoolerInTransactionMode) {
  const leasehold::rig::Pgbouncer pooler(fence_server());
  const UserConnection pooled(pooler.url(database_));
  const UserConnection also(pooler.url(database_));
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(good(fence_of(pooled).transaction(holder_, insert_row)));
    EXPECT_TRUE(good(fence_of(also).transaction(holder_, insert_row)));
  }
  EXPECT_EQ(rows(), "7");
  ASSERT_TRUE(good(fence_of(pooled).transaction(token_of(34, '2'), nothing)));
  EXPECT_TRUE(bad(fence_of(also).transaction(holder_, insert_row), ErrorCode::fenced_out));
}

// While another session is inside, and commits.
class EnterAgainBehind : public EnterAgain, public ::testing::WithParamInterface<const char*> {
 protected:
  bool reads_committed() const { return std::string(GetParam()) == "read committed"; }
  Status again_behind(const Token& other) {
    EXPECT_EQ(user_.exec(std::string("SET default_transaction_isolation = '") + GetParam() + "'"),
              "");
    const UserConnection first(url());
    EXPECT_EQ(first.exec("BEGIN"), "");
    EXPECT_TRUE(good(fence_of(first).enter(other)));
    EXPECT_EQ(first.exec("INSERT INTO data VALUES('first')"), "");
    auto waiting = std::async(std::launch::async, [&] {
      return fence().transaction(holder_, [&](OpenTransaction& open) {
        seen_ = user_.ask("SELECT count(*) FROM data");
        return insert_row(open);
      });
    });
    await_waiter_elsewhere();
    EXPECT_EQ(first.exec("COMMIT"), "");
    return waiting.get();
  }

  std::string seen_ = "not run";
};

TEST_P(EnterAgainBehind, ItselfSeesWhatItWroteOrMustBeginAgain) {
  const Status behind = again_behind(holder_);
  EXPECT_EQ(behind.has_value(), reads_committed());
  EXPECT_EQ(seen_, reads_committed() ? "2" : "not run");
}

TEST_P(EnterAgainBehind, TheNextNeverGetsIn) {
  const Status behind = again_behind(token_of(34, '2'));
  EXPECT_TRUE(bad(behind, reads_committed() ? ErrorCode::fenced_out : ErrorCode::unavailable));
  EXPECT_EQ(seen_, "not run");
  EXPECT_TRUE(bad(again(), ErrorCode::fenced_out));
  EXPECT_EQ(rows(), "2");
}

INSTANTIATE_TEST_SUITE_P(All, EnterAgainBehind,
                         ::testing::Values("read committed", "repeatable read", "serializable"));

}  // namespace
}  // namespace leasehold::postgres
