#include "leasehold/sqlite/row_fence.h"

#include "test_database.h"
#include "testing/sql_fence_suites.h"

namespace leasehold::sqlite {
namespace {

class RowFenceTest : public leasehold::testing::RowFenceSuite<TestDatabase> {};

TEST_F(RowFenceTest, StatementCanBePreparedByTheUser) {
  sqlite3_stmt* pay = nullptr;
  ASSERT_EQ(sqlite3_prepare_v2(user_.get(), orders().write_sql({"note"}).value().c_str(), -1, &pay,
                               nullptr),
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

TEST_F(RowFenceTest, WriterThatIsBlockedIsUnavailable) {
  const UserConnection other(database_.place(), /*busy_millis=*/10);
  ASSERT_EQ(user_.exec("BEGIN IMMEDIATE"), "");
  EXPECT_TRUE(bad(RowFence::open(other.get(), "orders")->write("7", token_of(33, '1'), {}),
                  ErrorCode::unavailable));
}

}  // namespace
}  // namespace leasehold::sqlite
