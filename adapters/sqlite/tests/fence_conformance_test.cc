#include "testing/fence_conformance.h"

#include <functional>
#include <set>
#include <type_traits>

#include "fence_table.h"
#include "leasehold/sqlite/fence.h"
#include "leasehold/sqlite/row_fence.h"
#include "user_database.h"

namespace leasehold::testing {
namespace {

using sqlite::Connection;
using sqlite::Entry;
using sqlite::Fence;
using sqlite::good;
using sqlite::OpenTransaction;
using sqlite::RowFence;
using sqlite::Statement;
using sqlite::UserConnection;

Entry entry_of(EntryMode mode) {
  return mode == EntryMode::single ? Entry::single : Entry::repeatable;
}

Result<std::string> read_value(sqlite3* db, const std::string& table, std::string_view resource) {
  auto select = Connection(db).prepare("SELECT value FROM " + table + " WHERE name = ?1");
  if (!select) return fail(std::move(select.error()));
  auto row = select->bind(1, resource).step();
  if (!row) return fail(std::move(row.error()));
  return *row ? std::string(select->text(0)) : std::string();
}

Status write_value(sqlite3* db, const std::string& table, std::string_view resource,
                   std::string_view value) {
  auto insert =
      Connection(db).prepare("INSERT OR REPLACE INTO " + table + "(name, value) VALUES(?1, ?2)");
  if (!insert) return fail(std::move(insert.error()));
  return insert->bind(1, resource).bind(2, value).run();
}

// The form with a transaction: one table with the values of all resources.
class TransactionConnection : public FenceConnection {
 public:
  explicit TransactionConnection(const std::string& path) : user_(path) {
    // No test cuts the power, so there is no need to wait for the disk.
    EXPECT_EQ(user_.exec("PRAGMA synchronous = OFF; PRAGMA foreign_keys = ON"), "");
  }

  Result<std::string> enter_and_read(std::string_view resource, const Token& token,
                                     EntryMode mode) override {
    auto fence = Fence::open(user_.get(), resource);
    if (!fence) return fail(std::move(fence.error()));
    const std::string table = table_of(fence->resource());
    return fence->transaction(
        token, [&](OpenTransaction& open) { return read_value(open.handle(), table, resource); },
        entry_of(mode));
  }

  Status enter_and_write(std::string_view resource, const Token& token, std::string_view value,
                         EntryMode mode, std::int64_t /*sequence*/) override {
    auto fence = Fence::open(user_.get(), resource);
    if (!fence) return fail(std::move(fence.error()));
    const std::string table = table_of(fence->resource());
    return fence->transaction(
        token,
        [&](OpenTransaction& open) { return write_value(open.handle(), table, resource, value); },
        entry_of(mode));
  }

  Status update(std::string_view resource, const Token& token, const Change& change) override {
    auto fence = Fence::open(user_.get(), resource);
    if (!fence) return fail(std::move(fence.error()));
    const std::string table = table_of(fence->resource());
    return fence->transaction(token, [&](OpenTransaction& open) -> Status {
      auto value = read_value(open.handle(), table, resource);
      if (!value) return fail(std::move(value.error()));
      return write_value(open.handle(), table, resource, change(std::move(*value)));
    });
  }

  Result<std::string> peek(std::string_view resource) override {
    return read_value(user_.get(), table_of(ResourceName::parse(resource).value()), resource);
  }
  Result<std::vector<FenceMark>> marks() override { return sqlite::fence_marks(user_.get()); }
  Status adopt(const ResourceName& resource, const Lineage& lineage,
               TokenNumber at_least) override {
    return sqlite::adopt_lineage(Connection(user_.get()), resource, lineage, at_least);
  }

 protected:
  // Where the resource's value is.
  virtual std::string table_of(const ResourceName&) { return "data"; }

  UserConnection user_;
};

// The form with a guarded table: each resource has one of its own.
class TableConnection final : public TransactionConnection {
 public:
  using TransactionConnection::TransactionConnection;

 private:
  std::string table_of(const ResourceName& resource) override {
    const std::string table = "t" + std::to_string(std::hash<std::string>()(resource.str()));
    if (!made_.insert(table).second) return table;
    EXPECT_EQ(user_.exec("CREATE TABLE IF NOT EXISTS " + table + "(name PRIMARY KEY, value)"), "");
    EXPECT_TRUE(good(sqlite::guard_table(user_.get(), table, resource)));
    return table;
  }

  std::set<std::string> made_;
};

// The form in one statement: each resource is a row, which keeps its own mark.
class RowConnection final : public FenceConnection {
 public:
  explicit RowConnection(const std::string& path) : user_(path) {
    EXPECT_EQ(user_.exec("PRAGMA synchronous = OFF"), "");
  }

  Result<std::string> enter_and_read(std::string_view resource, const Token& token,
                                     EntryMode mode) override {
    make_row(resource);
    auto values = fence_.enter(resource, token, {"value"}, entry_of(mode));
    if (!values) return fail(std::move(values.error()));
    return values->at(0).value_or("");
  }
  Status enter_and_write(std::string_view resource, const Token& token, std::string_view value,
                         EntryMode mode, std::int64_t /*sequence*/) override {
    make_row(resource);
    return fence_.write(resource, token, {{"value", std::string(value)}}, entry_of(mode));
  }
  Result<std::string> peek(std::string_view resource) override {
    return read_value(user_.get(), "data", resource);
  }
  Result<std::vector<FenceMark>> marks() override { return fence_.marks(); }
  Status adopt(const ResourceName& resource, const Lineage& lineage,
               TokenNumber at_least) override {
    make_row(resource.str());
    return fence_.adopt(resource.str(), lineage, at_least);
  }

 private:
  void make_row(std::string_view resource) const {
    auto insert =
        Connection(user_.get()).prepare("INSERT OR IGNORE INTO data(name, value) VALUES(?1, '')");
    EXPECT_TRUE(good(insert->bind(1, resource).run()));
  }

  UserConnection user_;
  RowFence fence_ = RowFence::open(user_.get(), "data", "name").value();
};

template <class UserOfFence>
class SqliteFence final : public FenceUnderTest {
 public:
  explicit SqliteFence(const std::string& journal) {
    const UserConnection user(path());
    EXPECT_EQ(user.exec("PRAGMA journal_mode = " + journal), "");
    EXPECT_EQ(user.exec("CREATE TABLE data(name TEXT PRIMARY KEY, value TEXT)"), "");
    EXPECT_TRUE(good(sqlite::install_fence(user.get())));
    EXPECT_TRUE(good(sqlite::add_fence_columns(user.get(), "data")));
  }

  std::unique_ptr<FenceConnection> connect() override {
    return std::make_unique<UserOfFence>(path());
  }
  void restart() override {}  // the file is all there is
  bool update_is_one_transaction() const override {
    return !std::is_same_v<UserOfFence, RowConnection>;
  }

 private:
  std::string path() const { return folder_.file("data.db"); }
  sqlite::TempFolder folder_;
};

template <class UserOfFence>
FenceCase form(const std::string& name, const std::string& journal = "wal") {
  return {name, [journal] { return std::make_unique<SqliteFence<UserOfFence>>(journal); }};
}

INSTANTIATE_TEST_SUITE_P(Sqlite, FenceConformance,
                         ::testing::Values(form<TransactionConnection>("wal"),
                                           form<TransactionConnection>("delete", "delete"),
                                           form<TableConnection>("table"),
                                           form<RowConnection>("row")),
                         name_of_fence_case);

}  // namespace
}  // namespace leasehold::testing
