// The suites of the ways without a lock, on a real PostgreSQL.
#include "fence_database.h"
#include "leasehold/postgres/fenced_once.h"
#include "leasehold/postgres/once.h"
#include "leasehold/postgres/outbox.h"
#include "leasehold/postgres/versioned_row.h"
#include "testing/sql_ways.h"

namespace leasehold::testing {
namespace {

class PostgresWays {
 public:
  using Connection = postgres::UserConnection;
  using Once = postgres::Once;
  using Fence = postgres::Fence;
  using FencedOnce = postgres::FencedOnce;
  using VersionedRow = postgres::VersionedRow;
  using OpenTransaction = postgres::OpenTransaction;
  using FencedTransaction = postgres::FencedTransaction;

  static constexpr const char* kKeys = "leasehold_once.result";
  static constexpr const char* kMessages = "leasehold_outbox.message";
  static constexpr const char* kMakeOld =
      "UPDATE leasehold_once.result SET stored_at = stored_at - interval '2 hours'";
  static constexpr const char* kRemoveOnce = "DROP SCHEMA leasehold_once CASCADE";
  static std::string of_the_mark(const std::string& column) {
    return "SELECT " + column + " FROM leasehold_fence.marks() WHERE resource = 'ledger'";
  }

  PostgresWays() {
    const Connection user(place());
    EXPECT_EQ(user.exec("CREATE TABLE data(value text)"), "");
    EXPECT_EQ(user.exec(kStockTable), "");
    EXPECT_TRUE(good(postgres::install_outbox(user.get()))) << "with the fence";
    EXPECT_TRUE(good(postgres::install_once(user.get())));
  }
  ~PostgresWays() { postgres::fence_server().drop_database(database_); }

  std::string place() const { return postgres::fence_server().url(database_); }
  void await_waiter() const { postgres::await_waiter(Connection(place())); }
  static Status guard(const Connection& user) {
    return postgres::guard_table(user.get(), "data", ResourceName::parse("ledger").value());
  }
  static std::string run_inside(OpenTransaction& open, const std::string& sql) {
    return postgres::exec_on(open.handle(), sql);
  }

 private:
  const std::string database_ = postgres::fence_server().create_database();
};

LEASEHOLD_SQL_WAYS(Postgres, PostgresWays);

}  // namespace
}  // namespace leasehold::testing
