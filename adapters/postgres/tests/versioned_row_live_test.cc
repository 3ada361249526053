#include "leasehold/postgres/versioned_row.h"

#include <string>

#include "fence_database.h"
#include "testing/values_conformance.h"

namespace leasehold::postgres {
namespace {

class VersionedRowTest : public FenceDatabase {
 protected:
  VersionedRowTest() { EXPECT_EQ(user_.exec(leasehold::testing::kStockTable), ""); }

  static VersionedRow row_of(const UserConnection& user) {
    return VersionedRow::open(user.get(), {.table = "stock", .key = "bolt", .columns = {"amount"}})
        .value();
  }
  std::string stock() const { return user_.ask("SELECT amount FROM stock WHERE id = 'bolt'"); }
};

// Else a crash could take back what others have read, and the same version would come again.
TEST_F(VersionedRowTest, VersionIsCommittedDurably) {
  watch_commits("stock");
  EXPECT_TRUE(row_of(user_).write(row_of(user_).read().value(), {"1"}).value());
  EXPECT_EQ(commits(), "on");
}

// The server itself says then that somebody was faster.
TEST_F(VersionedRowTest, RepeatableReadSessionsLoseNothing) {
  const UserConnection other(url());
  ASSERT_EQ(user_.exec("SET default_transaction_isolation = 'repeatable read'"), "");
  ASSERT_EQ(other.exec("BEGIN; UPDATE stock SET amount = 50, version = version + 1"), "");
  const auto seen = row_of(user_).read().value();
  auto late = std::async(std::launch::async, [&] { return row_of(user_).write(seen, {"99"}); });
  await_waiter_elsewhere();
  ASSERT_EQ(other.exec("COMMIT"), "");
  const auto written = late.get();
  ASSERT_TRUE(good(written));
  EXPECT_FALSE(*written);
  EXPECT_EQ(stock(), "50");
}

}  // namespace
}  // namespace leasehold::postgres
