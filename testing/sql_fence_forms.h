// The forms of the fence in a SQL database, for FenceConformance: a transaction, a guarded table, a
// row. `Database` is one of testing/sql_patterns.h that has besides, as a test of the adapter can,
// - run(handle, sql, parameters): the rows of one statement
// - make_table(connection, table, resource): a table with name and value, unless it is there,
//   guarded by the resource
// - restart()
// and whose table "data" has the columns name and value, and those of a row fence.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "leasehold/sql/statement.h"
#include "testing/fence_conformance.h"
#include "testing/results.h"

namespace leasehold::testing {

// One table with the values of all resources.
template <class Database>
class TransactionForm : public AdministeredConnection {
  using Open = typename Database::OpenTransaction;

 public:
  explicit TransactionForm(const Database& database)
      : AdministeredConnection(Database::adapters().front(), database.url()),
        user_(database.place()) {}

  Result<std::string> enter_and_read(std::string_view resource, const Token& token,
                                     EntryMode mode) override {
    auto fence = Database::Fence::open(user_.get(), resource);
    if (!fence) return fail(std::move(fence.error()));
    const std::string table = table_of(fence->resource());
    return fence->transaction(
        token, [&](Open& open) { return read(open.handle(), table, resource); }, mode);
  }
  Status enter_and_write(std::string_view resource, const Token& token, std::string_view value,
                         EntryMode mode, std::int64_t /*sequence*/) override {
    const auto put = [&](std::string) { return std::string(value); };
    return change(resource, token, put, mode);
  }
  Status update(std::string_view resource, const Token& token, const Change& by) override {
    return change(resource, token, by, Entry::repeatable);
  }
  Result<std::string> read_beside(std::string_view resource, const Token& token) override {
    auto fence = Database::Fence::open(user_.get(), resource);
    if (!fence) return fail(std::move(fence.error()));
    const std::string table = table_of(fence->resource());
    return fence->read(token, [&](Open& open) { return read(open.handle(), table, resource); });
  }
  Result<std::string> peek(std::string_view resource) override {
    return read(user_.get(), table_of(ResourceName::parse(resource).value()), resource);
  }

 protected:
  // Where the resource's value is.
  virtual std::string table_of(const ResourceName&) { return "data"; }

  static Result<std::string> read(auto* handle, const std::string& table,
                                  std::string_view resource) {
    const std::string name(resource);
    auto rows = Database::run(handle, "SELECT value FROM " + table + " WHERE name = $1", {&name});
    if (!rows) return fail(std::move(rows.error()));
    return rows->count() == 0 ? std::string() : std::string(rows->text(0));
  }

  const typename Database::Connection user_;

 private:
  Status change(std::string_view resource, const Token& token, const Change& by, Entry entry) {
    auto fence = Database::Fence::open(user_.get(), resource);
    if (!fence) return fail(std::move(fence.error()));
    const std::string table = table_of(fence->resource());
    const auto work = [&](Open& open) -> Status {
      auto value = read(open.handle(), table, resource);
      if (!value) return fail(std::move(value.error()));
      const std::string name(resource);
      const std::string wanted = by(std::move(*value));
      return Database::run(
                 open.handle(),
                 "INSERT INTO " + table +
                     "(name, value) VALUES($1, $2) ON CONFLICT (name) DO UPDATE SET value = $2",
                 {&name, &wanted})
          .map([](const sql::Rows&) {});
    };
    return fence->transaction(token, work, entry);
  }
};

// Each resource has a table of its own, which it guards.
template <class Database>
class TableForm final : public TransactionForm<Database> {
 public:
  using TransactionForm<Database>::TransactionForm;

 private:
  std::string table_of(const ResourceName& resource) override {
    const std::string table = "t" + std::to_string(std::hash<std::string>()(resource.str()));
    if (made_.insert(table).second) Database::make_table(this->user_, table, resource);
    return table;
  }

  std::set<std::string> made_;
};

// Each resource is a row, which keeps its own mark.
template <class Database>
class RowForm final : public FenceConnection {
 public:
  explicit RowForm(const Database& database) : user_(database.place()) {}

  Result<std::string> enter_and_read(std::string_view resource, const Token& token,
                                     EntryMode mode) override {
    make_row(resource);
    auto values = fence_.enter(resource, token, {"value"}, mode);
    if (!values) return fail(std::move(values.error()));
    return values->at(0).value_or("");
  }
  Status enter_and_write(std::string_view resource, const Token& token, std::string_view value,
                         EntryMode mode, std::int64_t /*sequence*/) override {
    make_row(resource);
    return fence_.write(resource, token, {{"value", std::string(value)}}, mode);
  }
  Result<std::string> peek(std::string_view resource) override {
    const std::string name(resource);
    auto rows = Database::run(user_.get(), "SELECT value FROM data WHERE name = $1", {&name});
    if (!rows) return fail(std::move(rows.error()));
    return rows->count() == 0 ? std::string() : std::string(rows->text(0));
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
    const std::string name(resource);
    EXPECT_TRUE(good(Database::run(
        user_.get(), "INSERT INTO data(name) VALUES($1) ON CONFLICT DO NOTHING", {&name})));
  }

  const typename Database::Connection user_;
  const typename Database::RowFence fence_ =
      Database::RowFence::open(user_.get(), "data", "name").value();
};

template <class Database, template <class> class Form>
class SqlFenceUnderTest final : public FenceUnderTest {
  static constexpr bool is_row = std::is_same_v<Form<Database>, RowForm<Database>>;

 public:
  template <class... Arguments>
  explicit SqlFenceUnderTest(const Arguments&... arguments) : database_(arguments...) {}

  std::unique_ptr<FenceConnection> connect() override {
    return std::make_unique<Form<Database>>(database_);
  }
  void restart() override { database_.restart(); }
  bool update_is_one_transaction() const override { return !is_row; }
  FenceWays ways() const override { return {.readers = !is_row}; }

 private:
  const Database database_;
};

// `arguments` are those of a Database.
template <class Database, template <class> class Form, class... Arguments>
FenceCase sql_fence_case(const std::string& name, Arguments... arguments) {
  return {name, [arguments...] {
            return std::make_unique<SqlFenceUnderTest<Database, Form>>(arguments...);
          }};
}

}  // namespace leasehold::testing
