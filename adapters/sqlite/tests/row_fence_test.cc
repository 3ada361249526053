#include "leasehold/sqlite/row_fence.h"

#include <gmock/gmock.h>

#include "user_database.h"

namespace leasehold::sqlite {
namespace {

using ::testing::HasSubstr;

class RowFenceTest : public ::testing::Test {
 protected:
  RowFenceTest() {
    EXPECT_EQ(
        user_.exec("CREATE TABLE orders(id INTEGER PRIMARY KEY, paid INTEGER CHECK(paid IN (0, "
                   "1)), note TEXT); INSERT INTO orders VALUES(7, 0, NULL)"),
        "");
    EXPECT_TRUE(good(add_fence_columns(user_.get(), "orders")));
  }
  RowFence orders() const { return RowFence::open(user_.get(), "orders").value(); }
  std::string row() const {
    return user_.ask(
        "SELECT paid || ' ' || coalesce(note, '-') || ' ' || coalesce(fence, 0) || ' ' || "
        "fence_refused FROM orders WHERE id = 7");
  }

  TempFolder folder_;
  UserConnection user_{folder_.file("data.db")};
};

TEST_F(RowFenceTest, WritesOfTheHighestTokenPass) {
  EXPECT_TRUE(good(orders().write("7", token_of(33, '1'), {{"paid", "1"}, {"note", "a"}})));
  EXPECT_EQ(row(), "1 a 33 0");
  EXPECT_TRUE(good(orders().write("7", token_of(33, '1'), {{"note", std::nullopt}})));
  EXPECT_TRUE(good(orders().write("7", token_of(34, '2'), {{"paid", "0"}})));
  const auto late = orders().write("7", token_of(33, '1'), {{"paid", "1"}});
  ASSERT_TRUE(bad(late, ErrorCode::fenced_out));
  EXPECT_EQ(late.error().refusal->mark, 34);
  EXPECT_EQ(row(), "0 - 34 1");
}

TEST_F(RowFenceTest, StatementCanBePreparedByTheUser) {
  sqlite3_stmt* pay = nullptr;
  ASSERT_EQ(
      sqlite3_prepare_v2(user_.get(), orders().write_sql({"note"}).c_str(), -1, &pay, nullptr),
      SQLITE_OK);
  const std::string lineage = lineage_of('a').str();
  const std::string request(32, '1');
  sqlite3_bind_int64(pay, 1, 7);
  sqlite3_bind_int64(pay, 2, 33);
  sqlite3_bind_text(pay, 3, lineage.c_str(), -1, SQLITE_TRANSIENT);
  sqlite3_bind_text(pay, 4, request.c_str(), -1, SQLITE_TRANSIENT);
  sqlite3_bind_text(pay, 5, "by hand", -1, SQLITE_TRANSIENT);
  EXPECT_EQ(sqlite3_step(pay), SQLITE_DONE);
  sqlite3_reset(pay);
  EXPECT_EQ(row(), "0 by hand 33 0");
  ASSERT_TRUE(good(orders().write("7", token_of(34, '2'), {{"note", "new"}})));
  EXPECT_EQ(sqlite3_step(pay), SQLITE_DONE);
  sqlite3_finalize(pay);
  EXPECT_EQ(row(), "0 new 34 0");
}

TEST_F(RowFenceTest, EnteringReadsAndShutsTheDoor) {
  const auto seen = orders().enter("7", token_of(34, '2'), {"id", "note"});
  ASSERT_TRUE(good(seen));
  EXPECT_EQ(seen->at(0), "7");
  EXPECT_EQ(seen->at(1), std::nullopt);
  EXPECT_TRUE(bad(orders().write("7", token_of(33, '1'), {{"note", "z"}}), ErrorCode::fenced_out));
  EXPECT_TRUE(bad(orders().enter("7", token_of(33, '1')), ErrorCode::fenced_out));
}

TEST_F(RowFenceTest, NumberThatWasWrittenByHandKeepsItsOrder) {
  ASSERT_EQ(user_.exec("UPDATE orders SET fence = 33"), "");
  EXPECT_TRUE(bad(orders().write("7", token_of(32, '1'), {}), ErrorCode::fenced_out));
  EXPECT_TRUE(good(orders().write("7", token_of(33, '1'), {})));
}

TEST_F(RowFenceTest, WhatIsNotThereIsInvalid) {
  ASSERT_EQ(user_.exec("CREATE TABLE bare(id)"), "");
  EXPECT_TRUE(bad(RowFence::open(user_.get(), "missing"), ErrorCode::invalid));
  EXPECT_TRUE(bad(RowFence::open(user_.get(), "orders; DROP TABLE orders"), ErrorCode::invalid));
  EXPECT_TRUE(bad(RowFence::open(user_.get(), "orders", "no"), ErrorCode::invalid));
  const auto bare = RowFence::open(user_.get(), "bare");
  ASSERT_TRUE(bad(bare, ErrorCode::invalid));
  EXPECT_THAT(bare.error().message, HasSubstr("fence"));
  EXPECT_TRUE(bad(add_fence_columns(user_.get(), "missing"), ErrorCode::invalid));

  const RowFence mine = orders();
  const Token token = token_of(33, '1');
  const auto no_row = mine.write("8", token, {{"paid", "1"}});
  ASSERT_TRUE(bad(no_row, ErrorCode::invalid));
  EXPECT_THAT(no_row.error().message, HasSubstr("no row '8'"));
  EXPECT_TRUE(bad(mine.write("", token, {{"paid", "1"}}), ErrorCode::invalid));
  EXPECT_TRUE(bad(mine.write("7", token, {{"no", "1"}}), ErrorCode::invalid));
  EXPECT_TRUE(bad(mine.write("7", token, {{"paid\" = 1 --", "1"}}), ErrorCode::invalid));
  EXPECT_TRUE(bad(mine.write("7", token, {{"paid", "2"}}), ErrorCode::invalid));
  EXPECT_TRUE(bad(mine.enter("7", token, {"no"}), ErrorCode::invalid));
  EXPECT_TRUE(
      bad(mine.adopt("8", lineage_of('b'), TokenNumber::of(1).value()), ErrorCode::invalid));
  EXPECT_EQ(row(), "0 - 0 0") << "and nothing was written";
}

TEST_F(RowFenceTest, NamesThatNeedQuotes) {
  ASSERT_EQ(user_.exec("CREATE TABLE \"Or\"\"ders\"(\"The Key\" TEXT PRIMARY KEY, \"A'b\" TEXT);"
                       "INSERT INTO \"Or\"\"ders\" VALUES('k', NULL)"),
            "");
  ASSERT_TRUE(good(add_fence_columns(user_.get(), "Or\"ders")));
  const auto rows = RowFence::open(user_.get(), "Or\"ders", "The Key");
  ASSERT_TRUE(good(rows));
  EXPECT_TRUE(good(rows->write("k", token_of(33, '1'), {{"A'b", "v"}})));
  EXPECT_EQ(rows->enter("k", token_of(33, '1'), {"A'b"})->at(0), "v");
}

TEST_F(RowFenceTest, InATransactionOfTheUsersItGoesWithIt) {
  ASSERT_EQ(user_.exec("BEGIN"), "");
  ASSERT_TRUE(good(orders().write("7", token_of(34, '2'), {{"paid", "1"}})));
  EXPECT_TRUE(bad(orders().write("7", token_of(33, '1'), {}), ErrorCode::fenced_out));
  ASSERT_EQ(user_.exec("ROLLBACK"), "");
  EXPECT_EQ(row(), "0 - 0 0");
  ASSERT_TRUE(good(add_fence_columns(user_.get(), "orders"))) << "again changes nothing";
}

TEST_F(RowFenceTest, WriterThatIsBlockedIsUnavailable) {
  const UserConnection other(folder_.file("data.db"), /*busy_millis=*/10);
  ASSERT_EQ(user_.exec("BEGIN IMMEDIATE"), "");
  EXPECT_TRUE(bad(RowFence::open(other.get(), "orders")->write("7", token_of(33, '1'), {}),
                  ErrorCode::unavailable));
}

}  // namespace
}  // namespace leasehold::sqlite
