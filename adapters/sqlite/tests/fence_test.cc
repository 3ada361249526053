#include "leasehold/sqlite/fence.h"

#include <gmock/gmock.h>

#include <atomic>
#include <latch>
#include <stdexcept>
#include <thread>
#include <vector>

#include "leasehold/sqlite/adapter.h"
#include "leasehold/url.h"
#include "user_database.h"

namespace leasehold::sqlite {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const std::string kLineage = std::string(32, 'a') + "/invoice/1234";
const std::string kRequest = std::string(32, '1');

class FenceTest : public ::testing::Test {
 protected:
  FenceTest() {
    EXPECT_EQ(user_.exec("PRAGMA journal_mode = wal; CREATE TABLE data(value)"), "");
    EXPECT_TRUE(good(install_fence(user_.get())));
  }

  Fence fence() const { return Fence::open(user_.get(), "ledger").value(); }

  // A plain-SQL entry; every value is written as SQL.
  std::string enter(const std::string& token, const std::string& rest = "'ledger'",
                    const std::string& request = "'" + kRequest + "'",
                    const std::string& lineage = "'" + kLineage + "'",
                    const std::string& single = "0") const {
    return user_.exec(
        "INSERT INTO leasehold_enter(resource, token, lineage, request, single_entry) VALUES(" +
        rest + ", " + token + ", " + lineage + ", " + request + ", " + single + ")");
  }
  std::string rows() const { return user_.ask("SELECT count(*) FROM data"); }
  std::string mark() const {
    return user_.ask("SELECT token FROM leasehold_fence WHERE resource = 'ledger'");
  }
  std::string refused() const {
    return user_.ask("SELECT refused FROM leasehold_fence WHERE resource = 'ledger'");
  }

  TempFolder folder_;
  std::string path_ = folder_.file("data.db");
  UserConnection user_{path_};
};

Status insert_row(OpenTransaction& open) {
  sqlite3_exec(open.handle(), "INSERT INTO data VALUES(1)", nullptr, nullptr, nullptr);
  return {};
}

TEST_F(FenceTest, InstallingAgainChangesNothing) {
  ASSERT_EQ(enter("33"), "");
  EXPECT_TRUE(good(install_fence(user_.get())));
  EXPECT_EQ(mark(), "33");
}

TEST_F(FenceTest, ManyMayInstallAtOnce) {
  const std::string path = folder_.file("shared.db");
  constexpr int count = 4;
  std::latch start(count);
  std::atomic<int> installed = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < count; ++i) {
      threads.emplace_back([&] {
        const UserConnection mine(path);
        start.arrive_and_wait();
        if (install_fence(mine.get())) ++installed;
      });
    }
  }
  EXPECT_EQ(installed, count);
  EXPECT_TRUE(good(Fence::open(UserConnection(path).get(), "ledger")));
}

TEST_F(FenceTest, InstallingInsideATransactionIsInvalid) {
  ASSERT_EQ(user_.exec("BEGIN"), "");
  EXPECT_TRUE(bad(install_fence(user_.get()), ErrorCode::invalid));
  ASSERT_EQ(user_.exec("ROLLBACK"), "");
}

TEST_F(FenceTest, AFileOfLocksIsLeftAlone) {
  const std::string path = folder_.file("locks.db");
  adapters().front().open_store(Url::parse("sqlite:" + path).value(), {}).value();
  const UserConnection locks(path);
  const std::string before = locks.ask("SELECT group_concat(sql) FROM sqlite_master");
  EXPECT_TRUE(bad(install_fence(locks.get()), ErrorCode::invalid));
  EXPECT_EQ(locks.ask("SELECT group_concat(sql) FROM sqlite_master"), before);
}

TEST_F(FenceTest, OpeningWithoutAFenceIsUnavailable) {
  const UserConnection bare(folder_.file("bare.db"));
  const auto fence = Fence::open(bare.get(), "ledger");
  ASSERT_TRUE(bad(fence, ErrorCode::unavailable));
  EXPECT_THAT(fence.error().message, HasSubstr("not installed"));
  EXPECT_THAT(fence.error().message, HasSubstr("leasehold fence install"));
}

TEST_F(FenceTest, LaterVersionIsRefusedAndKept) {
  ASSERT_EQ(user_.exec("UPDATE leasehold_version SET version = 7 WHERE part = 'fence'"), "");
  const auto opened = Fence::open(user_.get(), "ledger");
  ASSERT_TRUE(bad(opened, ErrorCode::unavailable));
  EXPECT_THAT(opened.error().message,
              AllOf(HasSubstr("version 7"), HasSubstr("version 3"),
                    HasSubstr("use a program that is at least as new"), Not(HasSubstr("remove"))));
  EXPECT_TRUE(bad(install_fence(user_.get()), ErrorCode::unavailable));
  EXPECT_TRUE(bad(remove_fence(user_.get()), ErrorCode::unavailable));
  EXPECT_EQ(user_.ask("SELECT count(*) FROM leasehold_fence"), "0") << "it is still there";
}

TEST_F(FenceTest, EarlierVersionIsRefusedAndSaysHowToBeginAfresh) {
  ASSERT_TRUE(good(fence().transaction(token_of(33, '1'), insert_row)));
  // As version 2 was, which had no readers.
  ASSERT_EQ(user_.exec("UPDATE leasehold_version SET version = 2 WHERE part = 'fence';"
                       "DROP VIEW leasehold_enter_to_read; DROP TABLE leasehold_floor"),
            "");
  EXPECT_TRUE(bad(Fence::open(user_.get(), "ledger"), ErrorCode::unavailable));
  const auto refused = install_fence(user_.get());
  ASSERT_TRUE(bad(refused, ErrorCode::unavailable));
  EXPECT_THAT(refused.error().message,
              AllOf(HasSubstr("has version 2 of"), HasSubstr("to begin afresh"),
                    HasSubstr("`leasehold fence remove URL --force`, and install it"),
                    HasSubstr("it forgets its marks")));
  EXPECT_EQ(user_.ask("SELECT token FROM leasehold_fence"), "33") << "nothing was changed";

  ASSERT_TRUE(good(remove_fence(user_.get())));
  ASSERT_TRUE(good(install_fence(user_.get())));
  EXPECT_TRUE(good(fence().transaction(token_of(32, '2'), insert_row))) << "the mark is forgotten";
}

TEST_F(FenceTest, FenceRemovedUnderAnOpenHandleFailsClosed) {
  const Fence ledger = fence();
  ASSERT_EQ(user_.exec("DROP TRIGGER leasehold_enter_check"), "");
  EXPECT_TRUE(bad(ledger.transaction(token_of(33, '1'), insert_row), ErrorCode::unavailable));
  ASSERT_EQ(user_.exec("DROP VIEW leasehold_enter"), "");
  EXPECT_TRUE(bad(ledger.transaction(token_of(33, '1'), insert_row), ErrorCode::unavailable));
  EXPECT_EQ(rows(), "0");
}

TEST_F(FenceTest, DisabledTriggersFailClosed) {
  ASSERT_EQ(sqlite3_db_config(user_.get(), SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr), SQLITE_OK);
  EXPECT_TRUE(bad(fence().transaction(token_of(33, '1'), insert_row), ErrorCode::unavailable));
  EXPECT_EQ(rows(), "0");
}

TEST_F(FenceTest, EnteringNeedsATransaction) {
  EXPECT_TRUE(bad(fence().enter(token_of(33, '1')), ErrorCode::invalid));
  EXPECT_EQ(mark(), "none");
}

TEST_F(FenceTest, EnteringMovesTheMarkWithTheUsersOwnTransaction) {
  ASSERT_EQ(user_.exec("BEGIN"), "");
  ASSERT_TRUE(good(fence().enter(token_of(33, '1'))));
  ASSERT_EQ(user_.exec("ROLLBACK"), "");
  EXPECT_EQ(mark(), "none");
  ASSERT_EQ(user_.exec("BEGIN"), "");
  ASSERT_TRUE(good(fence().enter(token_of(33, '1'))));
  ASSERT_EQ(user_.exec("COMMIT"), "");
  EXPECT_EQ(mark(), "33");
}

TEST_F(FenceTest, RefusedEntryLeavesTheTransactionOpenAndIsCountedAfterwards) {
  ASSERT_EQ(enter("34"), "");
  ASSERT_EQ(user_.exec("BEGIN"), "");
  EXPECT_TRUE(bad(fence().enter(token_of(33, '1')), ErrorCode::fenced_out));
  EXPECT_TRUE(bad(fence().count_refusal(), ErrorCode::invalid));
  ASSERT_EQ(user_.exec("ROLLBACK"), "");
  EXPECT_EQ(refused(), "0");
  EXPECT_TRUE(good(fence().count_refusal()));
  EXPECT_EQ(refused(), "1");
}

TEST_F(FenceTest, EntryHoldsTheWriteLockUntilTheCommit) {
  const UserConnection other(path_, 0);
  ASSERT_EQ(user_.exec("BEGIN"), "");
  ASSERT_TRUE(good(fence().enter(token_of(33, '1'))));
  const auto second =
      Fence::open(other.get(), "ledger")->transaction(token_of(34, '2'), insert_row);
  EXPECT_TRUE(bad(second, ErrorCode::unavailable));
  ASSERT_EQ(user_.exec("COMMIT"), "");
  EXPECT_TRUE(good(Fence::open(other.get(), "ledger")->transaction(token_of(34, '2'), insert_row)));
}

TEST_F(FenceTest, ReadingBeforeEnteringIsNamedWhenSomebodyHasWrittenSince) {
  const UserConnection other(path_);
  ASSERT_EQ(user_.exec("BEGIN"), "");
  EXPECT_EQ(rows(), "0");
  ASSERT_EQ(other.exec("INSERT INTO data VALUES(1)"), "");
  const auto late = fence().enter(token_of(33, '1'));
  ASSERT_TRUE(bad(late, ErrorCode::unavailable));
  EXPECT_THAT(late.error().message, HasSubstr("enter before reading"));
  ASSERT_EQ(user_.exec("ROLLBACK"), "");
}

TEST_F(FenceTest, TransactionCommitsWorkAndMarkTogether) {
  const Result<int> answer = fence().transaction(token_of(33, '1'), [](OpenTransaction& open) {
    return insert_row(open).map([] { return 42; });
  });
  ASSERT_TRUE(good(answer));
  EXPECT_EQ(*answer, 42);
  EXPECT_EQ(rows(), "1");
  EXPECT_EQ(mark(), "33");
}

TEST_F(FenceTest, WorkIsNotRunWhenRefused) {
  ASSERT_EQ(enter("34"), "");
  bool ran = false;
  const auto status = fence().transaction(token_of(33, '1'), [&](OpenTransaction&) -> Status {
    ran = true;
    return {};
  });
  EXPECT_TRUE(bad(status, ErrorCode::fenced_out));
  EXPECT_FALSE(ran);
  EXPECT_EQ(refused(), "1");
  EXPECT_NE(sqlite3_get_autocommit(user_.get()), 0);
}

TEST_F(FenceTest, FailedWorkRollsBackTheMarkToo) {
  const auto status = fence().transaction(token_of(33, '1'), [](OpenTransaction& open) -> Status {
    (void)insert_row(open);
    return fail(ErrorCode::lost, "too little time left");
  });
  EXPECT_TRUE(bad(status, ErrorCode::lost));
  EXPECT_EQ(rows(), "0");
  EXPECT_EQ(mark(), "none");
}

TEST_F(FenceTest, ExceptionRollsBackAndPassesOn) {
  const auto run = [&] {
    (void)fence().transaction(token_of(33, '1'), [](OpenTransaction& open) -> Status {
      (void)insert_row(open);
      throw std::runtime_error("work");
    });
  };
  EXPECT_THROW(run(), std::runtime_error);
  EXPECT_EQ(rows(), "0");
  EXPECT_NE(sqlite3_get_autocommit(user_.get()), 0);
}

TEST_F(FenceTest, WorkThatEndsTheTransactionIsTold) {
  const auto status = fence().transaction(token_of(33, '1'), [](OpenTransaction& open) -> Status {
    sqlite3_exec(open.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
    return {};
  });
  EXPECT_TRUE(bad(status, ErrorCode::invalid));
}

TEST_F(FenceTest, WorkThatBeginsATransactionOfItsOwnIsTold) {
  const auto status = fence().transaction(token_of(33, '1'), [](OpenTransaction& open) -> Status {
    sqlite3_exec(open.handle(), "COMMIT; BEGIN", nullptr, nullptr, nullptr);
    return insert_row(open);
  });
  EXPECT_TRUE(bad(status, ErrorCode::invalid));
  EXPECT_NE(sqlite3_get_autocommit(user_.get()), 0) << "what it wrote there is rolled back";
}

TEST_F(FenceTest, BrokenDeferredConstraintRollsBack) {
  ASSERT_EQ(user_.exec("PRAGMA foreign_keys = ON; CREATE TABLE parent(id INTEGER PRIMARY KEY);"
                       "CREATE TABLE child(id REFERENCES parent DEFERRABLE INITIALLY DEFERRED)"),
            "");
  const auto status = fence().transaction(token_of(33, '1'), [](OpenTransaction& open) -> Status {
    sqlite3_exec(open.handle(), "INSERT INTO child VALUES(1)", nullptr, nullptr, nullptr);
    return {};
  });
  EXPECT_TRUE(bad(status, ErrorCode::invalid));
  EXPECT_EQ(mark(), "none");
  EXPECT_NE(sqlite3_get_autocommit(user_.get()), 0);
}

TEST_F(FenceTest, TransactionInsideATransactionIsInvalid) {
  ASSERT_EQ(user_.exec("BEGIN"), "");
  EXPECT_TRUE(bad(fence().transaction(token_of(33, '1'), insert_row), ErrorCode::invalid));
  EXPECT_EQ(sqlite3_get_autocommit(user_.get()), 0) << "the user's transaction was ended";
  ASSERT_EQ(user_.exec("ROLLBACK"), "");
}

TEST_F(FenceTest, RefusalThatCannotBeCountedSaysSo) {
  ASSERT_EQ(enter("34"), "");
  ASSERT_EQ(user_.exec("CREATE TRIGGER full BEFORE UPDATE OF refused ON leasehold_fence BEGIN"
                       " SELECT RAISE(ABORT, 'no room'); END"),
            "");
  const auto status = fence().transaction(token_of(33, '1'), insert_row);
  ASSERT_TRUE(bad(status, ErrorCode::fenced_out));
  EXPECT_THAT(status.error().store_words, HasSubstr("could not be counted"));
}

TEST_F(FenceTest, MarkOfOneResource) {
  EXPECT_FALSE(fence().mark().value());
  ASSERT_EQ(enter("33"), "");
  EXPECT_EQ(fence().mark().value()->mark, token_of(33, '1'));
}

TEST_F(FenceTest, MarkThatWasNotWrittenByTheFenceIsDamaged) {
  ASSERT_EQ(user_.exec("INSERT INTO leasehold_fence(resource, lineage) VALUES('x', 'nonsense')"),
            "");
  const auto marks = fence_marks(user_.get());
  ASSERT_TRUE(bad(marks, ErrorCode::unavailable));
  EXPECT_THAT(marks.error().message, HasSubstr("'x'"));
}

TEST_F(FenceTest, PlainSqlObeysTheSameRules) {
  EXPECT_EQ(enter("34"), "");
  EXPECT_EQ(enter("34"), "");
  EXPECT_THAT(enter("33"), StartsWith("leasehold: fenced_out: a higher token"));
  EXPECT_THAT(enter("34", "'ledger'", "'" + std::string(32, '2') + "'"),
              StartsWith("leasehold: fenced_out: this token has entered from another request"));
  EXPECT_THAT(enter("34", "'ledger'", "'" + kRequest + "'", "'" + kLineage + "'", "1"),
              StartsWith("leasehold: fenced_out: this token has entered once"));
  EXPECT_THAT(enter("99", "'ledger'", "'" + kRequest + "'", "'" + kLineage + "5'"),
              StartsWith("leasehold: fenced_out: the token is of another lineage"));
  EXPECT_EQ(enter("9223372036854775807"), "");
  EXPECT_EQ(mark(), "9223372036854775807");
}

TEST_F(FenceTest, PlainSqlMayLeaveOnceOut) {
  EXPECT_EQ(
      user_.exec(
          "INSERT INTO leasehold_enter(resource, token, lineage, request) VALUES('ledger', 3, '" +
          kLineage + "', '" + kRequest + "')"),
      "");
  EXPECT_EQ(mark(), "3");
}

TEST_F(FenceTest, CppAndPlainSqlMeetAtOneMark) {
  ASSERT_TRUE(good(fence().transaction(token_of(34, '1'), insert_row)));
  EXPECT_THAT(enter("33"), StartsWith("leasehold: fenced_out"));
  ASSERT_EQ(enter("35"), "");
  EXPECT_TRUE(bad(fence().transaction(token_of(34, '1'), insert_row), ErrorCode::fenced_out));
}

TEST_F(FenceTest, ConflictClausesDoNotOpenTheFence) {
  ASSERT_EQ(enter("34"), "");
  for (const std::string clause : {"IGNORE", "REPLACE", "FAIL", "ABORT", "ROLLBACK"}) {
    EXPECT_THAT(
        user_.exec("INSERT OR " + clause +
                   " INTO leasehold_enter(resource, token, lineage, request) VALUES('ledger',"
                   " 33, '" +
                   kLineage + "', '" + kRequest + "')"),
        StartsWith("leasehold: fenced_out"))
        << clause;
  }
  EXPECT_EQ(mark(), "34");
}

TEST_F(FenceTest, ManyRowsInOneInsertAreCheckedOneByOne) {
  const std::string tail = ", '" + kLineage + "', '" + kRequest + "')";
  EXPECT_THAT(user_.exec("INSERT INTO leasehold_enter(resource, token, lineage, request) VALUES"
                         "('ledger', 34" +
                         tail + ", ('ledger', 33" + tail),
              StartsWith("leasehold: fenced_out"));
  EXPECT_EQ(mark(), "none");
}

TEST_F(FenceTest, TokensThatAreNotWholeNumbersAreInvalid) {
  ASSERT_EQ(enter("5"), "");
  for (const std::string token : {"'9'", "9.5", "9.0", "1e300", "x'39'", "NULL", "0", "-1", "''",
                                  "9223372036854775808", "CAST(9 AS TEXT)"}) {
    EXPECT_THAT(enter(token), StartsWith("leasehold: invalid: token")) << token;
  }
  EXPECT_EQ(mark(), "5");
}

TEST_F(FenceTest, WrongRequestsLineagesAndModesAreInvalid) {
  const std::string hex31(31, '1');
  for (const std::string& request :
       {std::string("NULL"), "'" + hex31 + "'", "'" + hex31 + "11'", "'" + hex31 + "g'",
        "'" + hex31 + "A'", "x'" + kRequest + "'", std::string("1"), std::string("''"),
        "'" + kRequest + "' || char(0) || 'x'"}) {
    EXPECT_THAT(enter("5", "'ledger'", request), StartsWith("leasehold: invalid: request"))
        << request;
  }
  const std::string store(32, 'a');
  for (const std::string& lineage :
       {std::string("NULL"), "'" + store + "'", "'" + store + "/'", "'" + store + "x'",
        "'" + hex31 + "g/x'", "'" + hex31 + "A/x'", "'" + store + "/' || char(10)",
        "'" + store + "/" + std::string(513, 'n') + "'", "CAST('" + store + "/x' AS BLOB)",
        "'" + store + "/x' || char(0) || 'y'"}) {
    EXPECT_THAT(enter("5", "'ledger'", "'" + kRequest + "'", lineage),
                StartsWith("leasehold: invalid: lineage"))
        << lineage;
  }
  for (const std::string single : {"2", "-1", "'1'", "1.0", "'yes'"}) {
    EXPECT_THAT(enter("5", "'ledger'", "'" + kRequest + "'", "'" + kLineage + "'", single),
                StartsWith("leasehold: invalid: single_entry"))
        << single;
  }
  EXPECT_EQ(mark(), "none");
}

TEST_F(FenceTest, WrongResourcesAreInvalidInPlainSqlToo) {
  for (const std::string& resource :
       {std::string("NULL"), std::string("''"), std::string("7"), std::string("x'61'"),
        "'" + std::string(513, 'n') + "'", std::string("'a' || char(0) || 'b'"),
        std::string("char(10)"), std::string("'a' || char(127)"), std::string("char(133)"),
        std::string("'x' || char(8232)"), std::string("CAST(x'61ff' AS TEXT)"),
        std::string("CAST(x'c0af' AS TEXT)")}) {
    EXPECT_THAT(enter("5", resource), StartsWith("leasehold: invalid: resource")) << resource;
  }
  EXPECT_EQ(enter("5", "'" + std::string(512, 'n') + "'"), "");
  EXPECT_EQ(enter("5", "char(65533)"), "");
  EXPECT_EQ(user_.ask("SELECT count(*) FROM leasehold_fence"), "2");
}

TEST_F(FenceTest, WorksInAUtf16Database) {
  const UserConnection wide(folder_.file("wide.db"));
  ASSERT_EQ(wide.exec("PRAGMA encoding = 'UTF-16'; CREATE TABLE data(value)"), "");
  ASSERT_TRUE(good(install_fence(wide.get())));
  const auto write = [&](const std::string& name, std::int64_t number) {
    const auto fence = Fence::open(wide.get(), name);
    return fence->transaction(token_of(number, '1'), insert_row);
  };
  EXPECT_TRUE(good(write("Жук 🔒", 34)));
  EXPECT_TRUE(bad(write("Жук 🔒", 33), ErrorCode::fenced_out));
  EXPECT_TRUE(good(write(std::string(256, 'n'), 1)));
  EXPECT_TRUE(bad(write(std::string(257, 'n'), 1), ErrorCode::invalid));
  EXPECT_EQ(fence_marks(wide.get())->size(), 2u);
}

TEST_F(FenceTest, MarksCannotBeDeletedOrLoweredByAccident) {
  ASSERT_EQ(enter("34"), "");
  EXPECT_THAT(user_.exec("DELETE FROM leasehold_fence"), StartsWith("leasehold: invalid"));
  EXPECT_THAT(user_.exec("UPDATE leasehold_fence SET token = 1"), StartsWith("leasehold: invalid"));
  EXPECT_THAT(user_.exec("UPDATE leasehold_fence SET token = NULL"),
              StartsWith("leasehold: invalid"));
  for (const char* sql :
       {"INSERT OR REPLACE INTO leasehold_fence(resource) SELECT resource FROM leasehold_fence",
        "REPLACE INTO leasehold_fence(resource, refused) SELECT resource, 1 FROM leasehold_fence",
        "UPDATE leasehold_fence SET resource = 'other'",
        "INSERT INTO leasehold_fence(resource) VALUES('other');"
        "UPDATE OR REPLACE leasehold_fence SET resource = 'ledger' WHERE resource = 'other'"}) {
    EXPECT_THAT(user_.exec(sql), StartsWith("leasehold: invalid: a mark")) << sql;
  }
  EXPECT_NE(user_.exec("DELETE FROM leasehold_enter"), "");
  EXPECT_NE(user_.exec("UPDATE leasehold_enter SET token = 1"), "");
  EXPECT_EQ(mark(), "34");
}

TEST_F(FenceTest, TemporaryObjectsDoNotHideTheFence) {
  ASSERT_EQ(enter("34"), "");
  ASSERT_EQ(
      user_.exec(
          "CREATE TEMP TABLE leasehold_enter(resource, token, lineage, request, single_entry)"),
      "");
  EXPECT_TRUE(bad(fence().transaction(token_of(33, '1'), insert_row), ErrorCode::fenced_out));
}

}  // namespace
}  // namespace leasehold::sqlite
