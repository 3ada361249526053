#include "leasehold/postgres/row_fence.h"

#include "fence_database.h"

namespace leasehold::postgres {
namespace {

class RowFenceTest : public FenceDatabase {
 protected:
  RowFenceTest() {
    EXPECT_EQ(user_.exec("CREATE TABLE orders(id int PRIMARY KEY, paid boolean, note text);"
                         "INSERT INTO orders VALUES(7, false)"),
              "");
    EXPECT_TRUE(good(add_fence_columns(user_.get(), "orders")));
  }
  RowFence orders() const { return RowFence::open(user_.get(), "orders").value(); }
  std::string row() const {
    return user_.ask(
        "SELECT paid || ' ' || coalesce(note, '-') || ' ' || coalesce(fence, 0) || ' ' "
        "|| fence_refused FROM orders WHERE id = 7");
  }
};

TEST_F(RowFenceTest, MarkIsCommittedDurably) {
  watch_commits("orders");
  ASSERT_TRUE(good(orders().enter("7", token_of(33, '1'))));
  EXPECT_EQ(commits(), "on") << "entered";
  ASSERT_TRUE(good(orders().write("7", token_of(33, '1'), {{"note", "a"}})));
  EXPECT_EQ(commits(), "on") << "written";
  EXPECT_TRUE(bad(orders().enter("7", token_of(32, '2')), ErrorCode::fenced_out));
  EXPECT_EQ(commits(), "on") << "refused";
  ASSERT_TRUE(good(orders().adopt("7", token_of(33, '1').lineage, TokenNumber::of(40).value())));
  EXPECT_EQ(commits(), "on") << "adopted";
}

TEST_F(RowFenceTest, StatementIsPreparedOnceAndItsLossIsNotNoticed) {
  const auto prepared = [&] {
    return user_.ask("SELECT count(*) FROM pg_prepared_statements WHERE name LIKE 'leasehold_%'");
  };
  const auto write = [&](const char* note) {
    return orders().write("7", token_of(33, '1'), {{"note", note}});
  };
  EXPECT_TRUE(good(write("a")));
  EXPECT_TRUE(good(write("b")));
  EXPECT_EQ(prepared(), "1");
  EXPECT_TRUE(good(orders().write("7", token_of(33, '1'), {{"paid", "true"}})));
  EXPECT_EQ(prepared(), "2") << "another statement has another name";
  EXPECT_EQ(row(), "true b 33 0");

  ASSERT_EQ(user_.exec("DEALLOCATE ALL"), "");
  EXPECT_TRUE(good(write("c")));
  EXPECT_EQ(row(), "true c 33 0");
  EXPECT_TRUE(bad(orders().write("7", token_of(32, '2'), {{"note", "z"}}), ErrorCode::fenced_out));
}

TEST_F(RowFenceTest, ColumnMayChangeItsTypeMeanwhile) {
  ASSERT_TRUE(good(orders().enter("7", token_of(33, '1'), {"id"})));
  ASSERT_EQ(user_.exec("ALTER TABLE orders ALTER id TYPE bigint"), "");
  const auto seen = orders().enter("7", token_of(33, '1'), {"id"});
  ASSERT_TRUE(good(seen));
  EXPECT_EQ(seen->at(0), "7");
}

TEST_F(RowFenceTest, LostPreparationDoesNotEndTheUsersTransaction) {
  const auto write = [&] { return orders().write("7", token_of(33, '1'), {{"note", "a"}}); };
  ASSERT_TRUE(good(write()));
  ASSERT_EQ(user_.exec("DEALLOCATE ALL; BEGIN; UPDATE orders SET paid = true"), "");
  EXPECT_TRUE(good(write()));
  ASSERT_EQ(user_.exec("COMMIT"), "");
  EXPECT_EQ(row(), "true a 33 0");
}

TEST_F(RowFenceTest, StatementCanBePreparedByTheUser) {
  const std::string sql = orders().write_sql({"note"}).value();
  ASSERT_EQ(user_.exec("PREPARE pay AS " + sql), "");
  const auto pay = [&](const std::string& token) {
    return user_.exec("EXECUTE pay(7, " + token + ", '" + lineage_of('a').str() + "', '" +
                      std::string(32, '1') + "', 'by hand')");
  };
  EXPECT_EQ(pay("33"), "");
  EXPECT_EQ(row(), "false by hand 33 0");
  ASSERT_TRUE(good(orders().write("7", token_of(34, '2'), {{"note", "new"}})));
  EXPECT_EQ(pay("33"), "");
  EXPECT_EQ(row(), "false new 34 0");
}

TEST_F(RowFenceTest, ZeroByteIsInvalid) {
  const auto refused = orders().write("7", token_of(33, '1'), {{"note", std::string("a\0b", 3)}});
  ASSERT_TRUE(bad(refused, ErrorCode::invalid));
  EXPECT_THAT(refused.error().message, HasSubstr("zero byte"));
  EXPECT_EQ(row(), "false - 0 0");
}

TEST_F(RowFenceTest, TableOfAnotherSchemaWithNamesThatNeedQuotes) {
  ASSERT_EQ(
      user_.exec("CREATE SCHEMA \"My Shop\"; CREATE TABLE \"My Shop\".\"Or\"\"ders\"(\"The Key\" "
                 "text PRIMARY KEY, \"A'b\" text);"
                 "INSERT INTO \"My Shop\".\"Or\"\"ders\" VALUES('k')"),
      "");
  const std::string table = "\"My Shop\".\"Or\"\"ders\"";
  ASSERT_TRUE(good(add_fence_columns(user_.get(), table)));
  const auto rows = RowFence::open(user_.get(), table, "The Key");
  ASSERT_TRUE(good(rows));
  EXPECT_TRUE(good(rows->write("k", token_of(33, '1'), {{"A'b", "v"}})));
  EXPECT_EQ(rows->enter("k", token_of(33, '1'), {"A'b"})->at(0), "v");
  EXPECT_TRUE(bad(rows->write("k", token_of(32, '1'), {}), ErrorCode::fenced_out));
}

TEST_F(RowFenceTest, OneOfTwoAtOnceWins) {
  const UserConnection other(url());
  const RowFence theirs = RowFence::open(other.get(), "orders").value();
  const RowFence mine = orders();
  ASSERT_EQ(user_.exec("BEGIN"), "");
  ASSERT_TRUE(good(mine.write("7", token_of(34, '2'), {{"note", "new"}})));
  auto waiting = std::async(std::launch::async, [&] {
    return theirs.write("7", token_of(33, '1'), {{"note", "zombie"}});
  });
  await_waiter();
  ASSERT_EQ(user_.exec("COMMIT"), "");
  EXPECT_TRUE(bad(waiting.get(), ErrorCode::fenced_out));
  EXPECT_EQ(row(), "false new 34 1");
}

}  // namespace
}  // namespace leasehold::postgres
