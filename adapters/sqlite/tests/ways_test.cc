// The suites of the ways without a lock, on a SQLite file.
#include "leasehold/sqlite/fence.h"
#include "leasehold/sqlite/fenced_once.h"
#include "leasehold/sqlite/once.h"
#include "leasehold/sqlite/outbox.h"
#include "leasehold/sqlite/versioned_row.h"
#include "testing/sql_ways.h"
#include "user_database.h"

namespace leasehold::testing {
namespace {

class SqliteWays {
 public:
  using Connection = sqlite::UserConnection;
  using Once = sqlite::Once;
  using Fence = sqlite::Fence;
  using FencedOnce = sqlite::FencedOnce;
  using VersionedRow = sqlite::VersionedRow;
  using OpenTransaction = sqlite::OpenTransaction;
  using FencedTransaction = sqlite::FencedTransaction;

  static constexpr const char* kKeys = "leasehold_once";
  static constexpr const char* kMessages = "leasehold_outbox";
  static constexpr const char* kMakeOld = "UPDATE leasehold_once SET stored_at = stored_at - 7200";
  static constexpr const char* kRemoveOnce =
      "DROP TABLE leasehold_once; DELETE FROM leasehold_version WHERE part = 'once'";
  static std::string of_the_mark(const std::string& column) {
    return "SELECT " + column + " FROM leasehold_fence WHERE resource = 'ledger'";
  }

  SqliteWays() {
    const Connection user(place());
    EXPECT_EQ(user.exec("PRAGMA journal_mode = wal; CREATE TABLE data(value)"), "");
    EXPECT_EQ(user.exec(kStockTable), "");
    EXPECT_TRUE(good(sqlite::install_outbox(user.get()))) << "with the fence";
    EXPECT_TRUE(good(sqlite::install_once(user.get())));
  }

  std::string place() const { return folder_.file("data.db"); }
  void await_waiter() const {}  // nobody can see who waits for the file
  static Status guard(const Connection& user) {
    EXPECT_EQ(user.exec("PRAGMA foreign_keys = ON"), "");
    return sqlite::guard_table(user.get(), "data", ResourceName::parse("ledger").value());
  }
  static std::string run_inside(OpenTransaction& open, const std::string& sql) {
    return sqlite::exec_on(open.handle(), sql);
  }

 private:
  const rig::TempFolder folder_;
};

LEASEHOLD_SQL_WAYS(Sqlite, SqliteWays);

}  // namespace
}  // namespace leasehold::testing
