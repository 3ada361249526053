// Each form of the fence against the rules of all fences, with a real server that is killed and
// started in between.
#include "testing/fence_conformance.h"

#include <functional>
#include <set>
#include <type_traits>

#include "fence_functions.h"
#include "leasehold/postgres/fence.h"
#include "leasehold/postgres/row_fence.h"
#include "postgres_under_test.h"
#include "user_connection.h"

namespace leasehold::testing {
namespace {

using postgres::Entry;
using postgres::Fence;
using postgres::OpenTransaction;
using postgres::RowFence;
using postgres::Session;
using postgres::UserConnection;

Entry entry_of(EntryMode mode) {
  return mode == EntryMode::single ? Entry::single : Entry::repeatable;
}

std::string quoted(const std::string& table) {
  return "\"" + table + "\"";
}

Result<std::string> read_value(PGconn* connection, const std::string& table,
                               std::string_view resource) {
  auto rows = Session(connection)
                  .run("SELECT value FROM " + quoted(table) + " WHERE name = $1",
                       {std::string(resource).c_str()});
  if (!rows) return fail(std::move(rows.error()));
  return rows->count() == 0 ? std::string() : std::string(rows->text(0));
}

Status write_value(PGconn* connection, const std::string& table, std::string_view resource,
                   std::string_view value) {
  auto rows = Session(connection)
                  .run("INSERT INTO " + quoted(table) +
                           " VALUES($1, $2) ON CONFLICT (name) DO UPDATE SET value = $2",
                       {std::string(resource).c_str(), std::string(value).c_str()});
  if (!rows) return fail(std::move(rows.error()));
  return {};
}

constexpr const char* kColumns = "(name text COLLATE \"C\" PRIMARY KEY, value text)";

// The function form: one table with the values of all resources.
class FunctionConnection : public FenceConnection {
 public:
  explicit FunctionConnection(const std::string& url) : user_(url) {}

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
  Result<std::vector<FenceMark>> marks() override { return postgres::fence_marks(user_.get()); }
  Status adopt(const ResourceName& resource, const Lineage& lineage,
               TokenNumber at_least) override {
    return postgres::adopt_lineage(Session(user_.get()), resource, lineage, at_least);
  }

 protected:
  // Where the resource's value is.
  virtual std::string table_of(const ResourceName&) { return "data"; }

  UserConnection user_;
};

// The table form: each resource has a table of its own, which it guards.
class TableConnection final : public FunctionConnection {
 public:
  using FunctionConnection::FunctionConnection;

 private:
  std::string table_of(const ResourceName& resource) override {
    const std::string table = "t" + std::to_string(std::hash<std::string>()(resource.str()));
    if (!made_.insert(table).second) return table;
    EXPECT_EQ(user_.exec("SELECT pg_advisory_lock(1)"), "");
    EXPECT_EQ(user_.exec("CREATE TABLE IF NOT EXISTS " + quoted(table) + kColumns), "");
    EXPECT_TRUE(postgres::good(postgres::guard_table(user_.get(), table, resource)));
    EXPECT_EQ(user_.exec("SELECT pg_advisory_unlock(1)"), "");
    return table;
  }

  std::set<std::string> made_;
};

// The form in one statement: each resource is a row, which keeps its own mark.
class RowConnection final : public FenceConnection {
 public:
  explicit RowConnection(const std::string& url) : user_(url) {}

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
    if (!ResourceName::parse(resource)) return;
    EXPECT_EQ(user_.exec("INSERT INTO data(name) VALUES($1) ON CONFLICT DO NOTHING",
                         {std::string(resource)}),
              "");
  }

  UserConnection user_;
  RowFence fence_ = RowFence::open(user_.get(), "data", "name").value();
};

class PostgresFence : public FenceUnderTest {
 public:
  PostgresFence() {
    const UserConnection user(url());
    EXPECT_EQ(user.exec(std::string("CREATE TABLE data") + kColumns), "");
    EXPECT_TRUE(postgres::good(postgres::install_fence(user.get())));
    EXPECT_TRUE(postgres::good(postgres::add_fence_columns(user.get(), "data")));
  }
  ~PostgresFence() override { shared_server().drop_database(database_); }

  void restart() override {
    shared_server().kill();
    shared_server().start();
  }

 protected:
  std::string url() const { return shared_server().url(database_); }

 private:
  const std::string database_ = shared_server().create_database();
};

template <class Connection>
class WithForm final : public PostgresFence {
 public:
  std::unique_ptr<FenceConnection> connect() override {
    return std::make_unique<Connection>(url());
  }
  bool update_is_one_transaction() const override {
    return !std::is_same_v<Connection, RowConnection>;
  }
};

template <class Connection>
FenceCase form(const std::string& name) {
  return {name, [] { return std::make_unique<WithForm<Connection>>(); }};
}

INSTANTIATE_TEST_SUITE_P(Postgres, FenceConformance,
                         ::testing::Values(form<FunctionConnection>("function"),
                                           form<TableConnection>("table"),
                                           form<RowConnection>("row")),
                         name_of_fence_case);

}  // namespace
}  // namespace leasehold::testing
