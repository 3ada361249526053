// A PostgreSQL database of one test, for the suites of every SQL database: see
// testing/sql_patterns.h.
#pragma once

#include <string>
#include <vector>

#include "fence_database.h"
#include "leasehold/postgres/adapter.h"
#include "leasehold/postgres/claim.h"
#include "leasehold/postgres/fence.h"
#include "leasehold/postgres/fenced_once.h"
#include "leasehold/postgres/once.h"
#include "leasehold/postgres/outbox.h"
#include "leasehold/postgres/row_fence.h"
#include "leasehold/postgres/versioned_row.h"
#include "testing/sql_patterns.h"

namespace leasehold::postgres {

using leasehold::testing::Installed;

class TestDatabase {
 public:
  using Connection = UserConnection;
  using Claim = postgres::Claim;
  using Once = postgres::Once;
  using Fence = postgres::Fence;
  using FencedOnce = postgres::FencedOnce;
  using RowFence = postgres::RowFence;
  using VersionedRow = postgres::VersionedRow;
  using OpenTransaction = postgres::OpenTransaction;
  using FencedTransaction = postgres::FencedTransaction;

  static constexpr const char* kKeys = "leasehold_once.result";
  static constexpr const char* kMessages = "leasehold_outbox.message";
  static constexpr const char* kMakeOld =
      "UPDATE leasehold_once.result SET stored_at = stored_at - interval '2 hours'";
  static constexpr const char* kRemoveOnce = "DROP SCHEMA leasehold_once CASCADE";
  static constexpr const char* kNotEntered = "LH002";
  static constexpr const char* kOrdersToo = "public.orders";
  static std::string as_argument(const std::string& table) { return sql::quoted(table); }
  static std::string of_the_mark(const std::string& column) {
    return "SELECT " + column + " FROM leasehold_fence.marks() WHERE resource = 'ledger'";
  }
  static std::string enter(const std::string& token, const std::string& resource = "ledger") {
    return "SELECT leasehold_fence.enter('" + resource + "', " + token + ", '" +
           lineage_of().str() + "', '" + std::string(32, '1') + "');";
  }
  static std::string put(const std::string& key, const std::string& payload) {
    return "SELECT leasehold_outbox.put('" + key + "', 'paid', '" + payload + "', NULL)";
  }

  explicit TestDatabase(Installed installed = Installed::everything) {
    const Connection user(place());
    EXPECT_EQ(user.exec("CREATE TABLE data(value text)"), "");
    EXPECT_EQ(user.exec(leasehold::testing::kStockTable), "");
    if (installed == Installed::nothing) return;
    EXPECT_TRUE(good(install_fence(user.get())));
    if (installed == Installed::fence) return;
    EXPECT_TRUE(good(install_outbox(user.get())));
    EXPECT_TRUE(good(install_once(user.get())));
  }

  ~TestDatabase() { fence_server().drop_database(database_); }

  std::string place() const { return fence_server().url(database_); }
  std::string url() const { return place(); }
  void await_waiter() const { postgres::await_waiter(Connection(place())); }

  static std::vector<Adapter> adapters() { return postgres::adapters(); }
  static Status guard(const Connection& user, const std::string& table,
                      const ResourceName& resource) {
    return guard_table(user.get(), table, resource);
  }
  static Status unguard(const Connection& user, const std::string& table) {
    return unguard_table(user.get(), table);
  }
  static Status add_columns(const Connection& user, const std::string& table) {
    return add_fence_columns(user.get(), table);
  }
  static Result<std::vector<FenceMark>> marks(const Connection& user) {
    return fence_marks(user.get());
  }
  static Result<std::int64_t> put(const Connection& user, const OutboxEntry& entry) {
    return outbox_put(user.get(), entry);
  }
  static std::string run_inside(OpenTransaction& open, const std::string& sql) {
    return exec_on(open.handle(), sql);
  }

 private:
  const std::string database_ = fence_server().create_database();
};

}  // namespace leasehold::postgres
