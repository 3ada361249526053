// Those who only read come in beside each other.
#include <gmock/gmock.h>

#include "fence_file.h"
#include "leasehold/sqlite/claim.h"

namespace leasehold::sqlite {
namespace {

using ::testing::StartsWith;
using Reason = Refusal::Reason;

class FenceReadersTest : public ::testing::TestWithParam<const char*> {
 protected:
  // Whether a reader may raise the mark while others read.
  static bool has_log() { return GetParam() == std::string("wal"); }

  static std::string value(sqlite3* db) {
    std::string found;
    const auto note = [](void* out, int, char** values, char**) {
      *static_cast<std::string*>(out) = values[0];
      return 0;
    };
    EXPECT_EQ(
        sqlite3_exec(db, "SELECT value FROM data WHERE name = 'ledger'", note, &found, nullptr),
        SQLITE_OK);
    return found;
  }
  // Reads before and after `meanwhile`, in one transaction.
  static Result<std::string> read(
      const UserConnection& user, const Token& token,
      const std::function<void()>& meanwhile = [] {}) {
    return fence_at(user).read(token, [&](OpenTransaction& open) -> Result<std::string> {
      const std::string before = value(open.handle());
      meanwhile();
      EXPECT_EQ(value(open.handle()), before);
      return before;
    });
  }
  FenceMark mark() const { return fence_at(here_).mark().value().value(); }

  static constexpr const char* kIsYoung =
      "SELECT CAST(strftime('%s', 'now') AS INTEGER) - entered_at < 3600 FROM leasehold_fence";

  const FenceFile file_{GetParam()};
  const UserConnection here_{file_.path(), 0};
  const UserConnection other_{file_.path(), 0};
  const UserConnection third_{file_.path(), 0};
};

TEST_P(FenceReadersTest, ManyReadTransactionsAreOpenSideBySide) {
  ASSERT_TRUE(good(append(here_, token_of(33, '1'), "a")));
  ASSERT_TRUE(good(read(here_, token_of(36, '3'))));
  const UserConnection writer(file_.path(), 0);
  const auto seen = read(here_, token_of(36, '3'), [&] {
    EXPECT_TRUE(good(read(other_, token_of(36, '3'), [&] {
      EXPECT_TRUE(good(read(third_, token_of(34, '2'), [&] {
        EXPECT_TRUE(refused(append(writer, token_of(35, '4'), "late"), Reason::lower, 36));
        const auto next = append(writer, token_of(37, '5'), "b");
        EXPECT_TRUE(has_log() ? good(next) : bad(next, ErrorCode::unavailable));
      })));
    })));
  });
  EXPECT_EQ(seen.value_or("refused"), "a");
  EXPECT_TRUE(good(append(writer, token_of(37, '5'), "c")));
  EXPECT_EQ(value(here_.get()), has_log() ? "abc" : "ac");
  EXPECT_TRUE(refused(read(here_, token_of(36, '3')), Reason::lower, 37));
}

TEST_P(FenceReadersTest, AHigherReaderNeedsTheWriteLockOnlyToRaiseTheMark) {
  ASSERT_TRUE(good(read(here_, token_of(34, '2'), [&] {
    const auto higher = read(other_, token_of(35, '3'));
    EXPECT_TRUE(has_log() ? good(higher) : bad(higher, ErrorCode::unavailable));
  })));
  EXPECT_TRUE(good(read(other_, token_of(35, '3'))));
  ASSERT_EQ(third_.exec("BEGIN IMMEDIATE"), "");
  EXPECT_TRUE(good(read(here_, token_of(35, '3'))));
  EXPECT_TRUE(good(read(here_, token_of(34, '2'))));
  EXPECT_TRUE(bad(read(here_, token_of(36, '4')), ErrorCode::unavailable));
  EXPECT_EQ(third_.exec("ROLLBACK"), "");
}

TEST_P(FenceReadersTest, AMarkThatIsHighEnoughIsNotWrittenAgain) {
  ASSERT_TRUE(good(read(here_, token_of(35, '3'))));
  const int before = sqlite3_total_changes(here_.get());
  EXPECT_TRUE(good(read(here_, token_of(35, '3'))));
  EXPECT_TRUE(good(read(here_, token_of(34, '2'))));
  EXPECT_EQ(sqlite3_total_changes(here_.get()), before);
  EXPECT_EQ(mark().reader, token_of(35, '3'));
}

// Else a sweep would take the mark of a resource that is only read for one that nobody uses.
TEST_P(FenceReadersTest, AReaderNotesTheTimeIfThatIsLongPast) {
  ASSERT_TRUE(good(read(here_, token_of(35, '3'))));
  ASSERT_EQ(here_.exec("UPDATE leasehold_fence SET entered_at = entered_at - 7200"), "");
  ASSERT_EQ(third_.exec("BEGIN IMMEDIATE"), "");
  EXPECT_TRUE(good(read(here_, token_of(34, '2')))) << "a writer does not keep it out";
  EXPECT_EQ(third_.exec("ROLLBACK"), "");
  EXPECT_EQ(here_.ask(kIsYoung), "0");
  EXPECT_TRUE(good(read(here_, token_of(34, '2'))));
  EXPECT_EQ(here_.ask(kIsYoung), "1");
  EXPECT_EQ(mark().reader, token_of(35, '3'));
}

TEST_P(FenceReadersTest, WorkThatWritesIsInvalidAndRolledBack) {
  for (const char* sql :
       {"UPDATE data SET value = 'x'", "CREATE TABLE more(value)", "CREATE TEMP TABLE more(value)",
        "SAVEPOINT mine; UPDATE data SET value = 'x'; ROLLBACK TO mine"}) {
    const auto status = fence_at(here_).read(token_of(33, '1'), [&](OpenTransaction& open) {
      EXPECT_EQ(exec_on(open.handle(), sql), "") << sql;
      return Status();
    });
    EXPECT_TRUE(bad(status, ErrorCode::invalid)) << sql;
    EXPECT_NE(sqlite3_get_autocommit(here_.get()), 0) << sql;
  }
  EXPECT_EQ(value(here_.get()), "");
  EXPECT_EQ(mark().reader, token_of(33, '1')) << "it has entered all the same";
}

TEST_P(FenceReadersTest, WorkThatEndsTheTransactionIsTold) {
  const auto status = fence_at(here_).read(token_of(33, '1'), [](OpenTransaction& open) {
    exec_on(open.handle(), "COMMIT; BEGIN");
    return Status();
  });
  EXPECT_TRUE(bad(status, ErrorCode::invalid));
  EXPECT_NE(sqlite3_get_autocommit(here_.get()), 0);
}

TEST_P(FenceReadersTest, FailedWorkHasShutOutLowerWritersAllTheSame) {
  const auto status = fence_at(here_).read(token_of(35, '3'), [](OpenTransaction&) -> Status {
    return fail(ErrorCode::lost, "too little time left");
  });
  EXPECT_TRUE(bad(status, ErrorCode::lost));
  EXPECT_TRUE(refused(enter(here_, token_of(34, '2')), Reason::lower, 35));
  EXPECT_TRUE(good(enter(here_, token_of(35, '3'))));
  EXPECT_FALSE(mark().reader) << "it is the writer now";
}

TEST_P(FenceReadersTest, ReadingIsNoRightToWriteToAGuardedTable) {
  ASSERT_TRUE(good(guard_table(here_.get(), "data", ResourceName::parse("ledger").value())));
  ASSERT_EQ(here_.exec("PRAGMA foreign_keys = ON"), "");
  const auto status = fence_at(here_).read(token_of(33, '1'), [](OpenTransaction& open) -> Status {
    EXPECT_THAT(exec_on(open.handle(), "UPDATE data SET value = 'x'"),
                StartsWith("leasehold: not_entered"));
    return {};
  });
  EXPECT_TRUE(bad(status, ErrorCode::invalid));
  EXPECT_TRUE(good(read(here_, token_of(33, '1'))));
  EXPECT_TRUE(good(append(here_, token_of(33, '1'), "a")));
}

TEST_P(FenceReadersTest, InATransactionOfOnesOwnItOnlyComparesIfItCan) {
  const Fence ledger = fence_at(here_);
  EXPECT_TRUE(bad(ledger.enter_to_read(token_of(33, '1')), ErrorCode::invalid)) << "none is open";
  ASSERT_EQ(here_.exec("BEGIN"), "");
  EXPECT_TRUE(good(ledger.enter_to_read(token_of(34, '1'))));
  EXPECT_EQ(sqlite3_txn_state(here_.get(), "main"), SQLITE_TXN_WRITE);
  ASSERT_EQ(here_.exec("COMMIT; BEGIN"), "");
  EXPECT_TRUE(good(ledger.enter_to_read(token_of(34, '1'))));
  EXPECT_TRUE(good(ledger.enter_to_read(token_of(33, '2'))));
  EXPECT_EQ(sqlite3_txn_state(here_.get(), "main"), SQLITE_TXN_READ);
  EXPECT_TRUE(refused(ledger.enter_to_read(token_of(34, '2')), Reason::twice, 34));
  ASSERT_EQ(here_.exec("ROLLBACK"), "");
  EXPECT_EQ(mark().refused, 0) << "whoever has a transaction of his own counts it himself";
  EXPECT_TRUE(good(ledger.count_refusal()));
  EXPECT_EQ(mark().refused, 1);
}

TEST_P(FenceReadersTest, InATransactionOfOnesOwnItNotesTheTimeToo) {
  const Fence ledger = fence_at(here_);
  ASSERT_TRUE(good(read(here_, token_of(35, '3'))));
  ASSERT_EQ(here_.exec("UPDATE leasehold_fence SET entered_at = entered_at - 7200"), "");
  ASSERT_EQ(third_.exec("BEGIN IMMEDIATE"), "");
  ASSERT_EQ(here_.exec("BEGIN"), "");
  EXPECT_TRUE(good(ledger.enter_to_read(token_of(34, '2')))) << "a writer does not keep it out";
  ASSERT_EQ(here_.exec("COMMIT"), "");
  ASSERT_EQ(third_.exec("ROLLBACK"), "");
  ASSERT_EQ(here_.exec("PRAGMA query_only = ON; BEGIN"), "");
  EXPECT_TRUE(good(ledger.enter_to_read(token_of(34, '2')))) << "it may read, if nothing else";
  ASSERT_EQ(here_.exec("COMMIT; PRAGMA query_only = OFF"), "");
  EXPECT_EQ(here_.ask(kIsYoung), "0");
  ASSERT_EQ(here_.exec("BEGIN"), "");
  EXPECT_TRUE(good(ledger.enter_to_read(token_of(34, '2'))));
  ASSERT_EQ(here_.exec("COMMIT"), "");
  EXPECT_EQ(here_.ask(kIsYoung), "1");
  EXPECT_EQ(mark().reader, token_of(35, '3'));
}

TEST_P(FenceReadersTest, RaisingBesideAWriterIsToldWhatWouldHaveWaited) {
  const Fence ledger = fence_at(here_);
  ASSERT_EQ(other_.exec("BEGIN IMMEDIATE"), "");
  ASSERT_EQ(here_.exec("BEGIN"), "");
  const auto late = ledger.enter_to_read(token_of(33, '1'));
  ASSERT_TRUE(bad(late, ErrorCode::unavailable));
  EXPECT_THAT(late.error().message, ::testing::HasSubstr("BEGIN IMMEDIATE"));
  ASSERT_EQ(here_.exec("ROLLBACK"), "");
  ASSERT_EQ(other_.exec("ROLLBACK"), "");
  ASSERT_EQ(here_.exec("BEGIN IMMEDIATE"), "");
  EXPECT_TRUE(good(ledger.enter_to_read(token_of(33, '1'))));
}

TEST_P(FenceReadersTest, RaisingAfterAReadIsToldIfSomebodyHasWrittenSince) {
  ASSERT_EQ(here_.exec("BEGIN"), "");
  EXPECT_EQ(value(here_.get()), "");
  if (has_log()) {
    ASSERT_EQ(other_.exec("UPDATE data SET value = 'b'"), "");
  } else {
    ASSERT_EQ(other_.exec("BEGIN IMMEDIATE"), "");
  }
  const auto late = fence_at(here_).enter_to_read(token_of(33, '1'));
  ASSERT_TRUE(bad(late, ErrorCode::unavailable));
  EXPECT_THAT(late.error().message, ::testing::HasSubstr("enter before reading"));
}

TEST_P(FenceReadersTest, ClaimsAndReadersDoNotMix) {
  ASSERT_TRUE(good(Claim::take(here_.get(), "ledger", request_of('1'))));
  EXPECT_TRUE(bad(read(here_, token_of(33, '1')), ErrorCode::invalid));
  ASSERT_TRUE(good(enter_to_read(here_, token_of(33, '1'), "till")));
  EXPECT_TRUE(bad(Claim::take(here_.get(), "till", request_of('1')), ErrorCode::invalid));
}

TEST_P(FenceReadersTest, RefusedReadersAreCounted) {
  ASSERT_TRUE(good(enter(here_, token_of(34, '2'))));
  EXPECT_TRUE(refused(read(here_, token_of(33, '1')), Reason::lower, 34));
  EXPECT_TRUE(refused(read(here_, token_of(34, '1')), Reason::twice, 34));
  EXPECT_TRUE(refused(read(here_, token_of(99, '1', 'b')), Reason::foreign, 34));
  EXPECT_EQ(mark().refused, 3);
}

TEST_P(FenceReadersTest, PlainSqlObeysTheSameRules) {
  const auto enter = [&](const char* view, const std::string& token, char request) {
    return here_.exec(std::string("INSERT INTO ") + view +
                      "(resource, token, lineage, request) VALUES('ledger', " + token + ", '" +
                      lineage_of().str() + "', '" + std::string(32, request) + "')");
  };
  const char* read = "leasehold_enter_to_read";
  EXPECT_EQ(enter("leasehold_enter", "33", '1'), "");
  EXPECT_EQ(enter(read, "35", '3'), "");
  EXPECT_EQ(enter(read, "34", '2'), "");
  EXPECT_EQ(enter(read, "33", '1'), "");
  EXPECT_THAT(enter(read, "32", '1'),
              StartsWith("leasehold: fenced_out: a higher token has entered"));
  EXPECT_THAT(enter(read, "35", '2'),
              StartsWith("leasehold: fenced_out: this token has entered from another request"));
  EXPECT_THAT(enter("leasehold_enter", "34", '2'),
              StartsWith("leasehold: fenced_out: a higher token has entered to read"));
  EXPECT_THAT(enter(read, "'36'", '2'), StartsWith("leasehold: invalid: token"));
  EXPECT_THAT(enter(read, "36.0", '2'), StartsWith("leasehold: invalid: token"));
  EXPECT_EQ(mark().reader, token_of(35, '3'));
  EXPECT_THAT(here_.exec("UPDATE leasehold_fence SET read_token = 34"),
              StartsWith("leasehold: invalid: a mark never goes down"));
  EXPECT_THAT(here_.exec("UPDATE leasehold_fence SET read_token = NULL"),
              StartsWith("leasehold: invalid: a mark never goes down"));
  EXPECT_EQ(enter("leasehold_enter", "35", '3'), "");
}

TEST_P(FenceReadersTest, AFenceThatIsRemovedOrDamagedFailsClosed) {
  ASSERT_TRUE(good(read(here_, token_of(33, '1'))));
  const Fence ledger = fence_at(here_);
  ASSERT_EQ(here_.exec("DROP TRIGGER leasehold_enter_to_read_check"), "");
  EXPECT_TRUE(bad(ledger.read(token_of(34, '1'), do_nothing), ErrorCode::unavailable));
  ASSERT_EQ(here_.exec("DROP TABLE leasehold_fence"), "");
  EXPECT_TRUE(bad(ledger.read(token_of(33, '1'), do_nothing), ErrorCode::unavailable));
  EXPECT_NE(sqlite3_get_autocommit(here_.get()), 0);
}

TEST_P(FenceReadersTest, ReadingInsideATransactionIsInvalid) {
  ASSERT_EQ(here_.exec("BEGIN"), "");
  EXPECT_TRUE(bad(read(here_, token_of(33, '1')), ErrorCode::invalid));
  EXPECT_EQ(sqlite3_get_autocommit(here_.get()), 0) << "the user's transaction was ended";
}

INSTANTIATE_TEST_SUITE_P(Each, FenceReadersTest, ::testing::Values("wal", "delete"),
                         [](const auto& each) { return each.param; });

// The steps of a reader are two commits apart; what comes in between.
class FenceReaderStepsTest : public ::testing::Test {
 protected:
  const FenceFile file_;
};

TEST_F(FenceReaderStepsTest, AWriterThatComesBetweenRaisingAndReadingRefusesTheReader) {
  const UserConnection reader(file_.path());
  const UserConnection writer(file_.path());
  const AtEachCommit then(reader.get(), [&](int commit) {
    if (commit == 1) EXPECT_TRUE(good(enter(writer, token_of(36, '4'))));
  });
  EXPECT_TRUE(refused(enter_to_read(reader, token_of(35, '3')), Reason::lower, 36));
}

TEST_F(FenceReaderStepsTest, AMarkThatIsResetBetweenRaisingAndReadingIsRaisedAgain) {
  const UserConnection reader(file_.path());
  const auto admin = file_.admin();
  const AtEachCommit then(reader.get(), [&](int commit) {
    if (commit == 1) EXPECT_TRUE(good(admin->reset(ResourceName::parse("ledger").value())));
  });
  EXPECT_TRUE(good(enter_to_read(reader, token_of(35, '3'))));
  EXPECT_EQ(then.commits(), 2);
  EXPECT_EQ(fence_at(reader).mark().value()->reader, token_of(35, '3'));
}

TEST_F(FenceReaderStepsTest, AReaderThatIsKilledBetweenRaisingAndReadingHasRaisedTheMark) {
  ASSERT_TRUE(is_killed_in([&] {
    const UserConnection reader(file_.path());
    const AtEachCommit then(reader.get(), [](int) { raise(SIGKILL); });
    (void)enter_to_read(reader, token_of(35, '3'));
  }));
  const UserConnection user(file_.path());
  EXPECT_TRUE(refused(enter(user, token_of(34, '2')), Reason::lower, 35));
  EXPECT_TRUE(good(enter_to_read(user, token_of(34, '2'))));
  EXPECT_TRUE(good(enter(user, token_of(36, '4'))));
}

}  // namespace
}  // namespace leasehold::sqlite
