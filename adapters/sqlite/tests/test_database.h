// A SQLite file of one test, for the suites of every SQL database: see testing/sql_patterns.h.
#pragma once

#include <string>
#include <vector>

#include "leasehold/sqlite/adapter.h"
#include "leasehold/sqlite/claim.h"
#include "leasehold/sqlite/fence.h"
#include "leasehold/sqlite/fenced_once.h"
#include "leasehold/sqlite/once.h"
#include "leasehold/sqlite/outbox.h"
#include "leasehold/sqlite/row_fence.h"
#include "leasehold/sqlite/versioned_row.h"
#include "testing/sql_patterns.h"
#include "user_database.h"

namespace leasehold::sqlite {

using leasehold::testing::Installed;

class TestDatabase {
 public:
  using Connection = UserConnection;
  using Claim = sqlite::Claim;
  using Once = sqlite::Once;
  using Fence = sqlite::Fence;
  using FencedOnce = sqlite::FencedOnce;
  using RowFence = sqlite::RowFence;
  using VersionedRow = sqlite::VersionedRow;
  using OpenTransaction = sqlite::OpenTransaction;
  using FencedTransaction = sqlite::FencedTransaction;

  static constexpr const char* kKeys = "leasehold_once";
  static constexpr const char* kMessages = "leasehold_outbox";
  static constexpr const char* kMakeOld = "UPDATE leasehold_once SET stored_at = stored_at - 7200";
  static constexpr const char* kRemoveOnce =
      "DROP TABLE leasehold_once; DELETE FROM leasehold_version WHERE part = 'once'";
  static constexpr const char* kNotEntered = "leasehold: not_entered";
  static constexpr const char* kOrdersToo = "ORDERS";
  static std::string as_argument(const std::string& table) { return table; }
  static std::string of_the_mark(const std::string& column) {
    return "SELECT " + column + " FROM leasehold_fence WHERE resource = 'ledger'";
  }
  static std::string enter(const std::string& token, const std::string& resource = "ledger") {
    return "INSERT INTO leasehold_enter(resource, token, lineage, request) VALUES('" + resource +
           "', " + token + ", '" + lineage_of().str() + "', '" + std::string(32, '1') + "');";
  }
  static std::string put(const std::string& key, const std::string& payload) {
    return "INSERT INTO leasehold_outbox(key, topic, payload) VALUES('" + key + "', 'paid', '" +
           payload + "')";
  }

  explicit TestDatabase(Installed installed = Installed::everything) {
    const Connection user(place());
    EXPECT_EQ(user.exec("PRAGMA journal_mode = wal; CREATE TABLE data(value)"), "");
    EXPECT_EQ(user.exec(leasehold::testing::kStockTable), "");
    if (installed == Installed::nothing) return;
    EXPECT_TRUE(good(install_fence(user.get())));
    if (installed == Installed::fence) return;
    EXPECT_TRUE(good(install_outbox(user.get())));
    EXPECT_TRUE(good(install_once(user.get())));
  }

  std::string place() const { return folder_.file("data.db"); }
  std::string url() const { return "sqlite:" + place(); }
  void await_waiter() const {}  // nobody can see who waits for the file

  static std::vector<Adapter> adapters() { return sqlite::adapters(); }
  static Status guard(const Connection& user, const std::string& table,
                      const ResourceName& resource) {
    EXPECT_EQ(user.exec("PRAGMA foreign_keys = ON"), "");
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
  const TempFolder folder_;
};

}  // namespace leasehold::sqlite
