#include "testing/fence_conformance.h"

#include "fence_table.h"
#include "leasehold/sqlite/fence.h"
#include "user_database.h"

namespace leasehold::testing {
namespace {

using sqlite::Connection;
using sqlite::Entry;
using sqlite::Fence;
using sqlite::OpenTransaction;
using sqlite::Statement;
using sqlite::UserConnection;

Entry entry_of(EntryMode mode) {
  return mode == EntryMode::once ? Entry::once : Entry::repeatable;
}

Result<std::string> read_value(sqlite3* db, std::string_view resource) {
  auto select = Connection(db).prepare("SELECT value FROM data WHERE name = ?1");
  if (!select) return fail(std::move(select.error()));
  auto row = select->bind(1, resource).step();
  if (!row) return fail(std::move(row.error()));
  return *row ? std::string(select->text(0)) : std::string();
}

Status write_value(sqlite3* db, std::string_view resource, std::string_view value) {
  auto insert = Connection(db).prepare("INSERT OR REPLACE INTO data VALUES(?1, ?2)");
  if (!insert) return fail(std::move(insert.error()));
  return insert->bind(1, resource).bind(2, value).run();
}

class SqliteConnection final : public FenceConnection {
 public:
  explicit SqliteConnection(const std::string& path) : user_(path) {
    // No test cuts the power, so there is no need to wait for the disk.
    EXPECT_EQ(user_.exec("PRAGMA synchronous = OFF"), "");
  }

  Result<std::string> enter_and_read(std::string_view resource, const Token& token,
                                     EntryMode mode) override {
    auto fence = Fence::open(user_.get(), resource);
    if (!fence) return fail(std::move(fence.error()));
    return fence->transaction(
        token, [&](OpenTransaction& open) { return read_value(open.handle(), resource); },
        entry_of(mode));
  }

  Status enter_and_write(std::string_view resource, const Token& token, std::string_view value,
                         EntryMode mode) override {
    auto fence = Fence::open(user_.get(), resource);
    if (!fence) return fail(std::move(fence.error()));
    return fence->transaction(
        token, [&](OpenTransaction& open) { return write_value(open.handle(), resource, value); },
        entry_of(mode));
  }

  Status update(std::string_view resource, const Token& token, const Change& change) override {
    auto fence = Fence::open(user_.get(), resource);
    if (!fence) return fail(std::move(fence.error()));
    return fence->transaction(token, [&](OpenTransaction& open) -> Status {
      auto value = read_value(open.handle(), resource);
      if (!value) return fail(std::move(value.error()));
      return write_value(open.handle(), resource, change(std::move(*value)));
    });
  }

  Result<std::string> peek(std::string_view resource) override {
    return read_value(user_.get(), resource);
  }
  Result<std::vector<FenceMark>> marks() override { return sqlite::fence_marks(user_.get()); }
  Status adopt(const ResourceName& resource, const Lineage& lineage,
               TokenNumber at_least) override {
    return sqlite::adopt_lineage(Connection(user_.get()), resource, lineage, at_least);
  }

 private:
  UserConnection user_;
};

class SqliteFence final : public FenceUnderTest {
 public:
  explicit SqliteFence(const std::string& journal) {
    const UserConnection user(path());
    EXPECT_EQ(user.exec("PRAGMA journal_mode = " + journal), "");
    EXPECT_EQ(user.exec("CREATE TABLE data(name PRIMARY KEY, value)"), "");
    EXPECT_TRUE(sqlite::install_fence(user.get()));
  }

  std::unique_ptr<FenceConnection> connect() override {
    return std::make_unique<SqliteConnection>(path());
  }
  void restart() override {}  // the file is all there is
  bool update_is_one_transaction() const override { return true; }

 private:
  std::string path() const { return folder_.file("data.db"); }
  sqlite::TempFolder folder_;
};

FenceCase with_journal(const std::string& journal) {
  return {journal, [journal] { return std::make_unique<SqliteFence>(journal); }};
}

INSTANTIATE_TEST_SUITE_P(Sqlite, FenceConformance,
                         ::testing::Values(with_journal("wal"), with_journal("delete")),
                         name_of_fence_case);

}  // namespace
}  // namespace leasehold::testing
