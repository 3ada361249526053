// The patterns without a lock in a SQL database, for the conformance suites. `Database` is one of a
// test's own, with an empty table "data", the table "stock", and what is to be installed. It has
// - types: Connection (exec(), ask(), get()), Claim, Once, Fence, FencedOnce, RowFence,
//   VersionedRow, OpenTransaction, FencedTransaction
// - place(): what a Connection is made with; url(); await_waiter(); adapters()
// - for a Connection: guard(), unguard(), add_columns(), marks(), put()
// - run_inside(OpenTransaction&, sql): empty, or a failure
// - in SQL: the tables kKeys and kMessages; enter(); put(); of_the_mark(column) at the fence
//   "ledger"; kMakeOld, which wants a WHERE; kRemoveOnce; kNotEntered, which begins what a guarded
//   table says; kOrdersToo, the table orders in other words; as_argument(table)
#pragma once

#include <memory>
#include <string>

#include "testing/fenced_once_conformance.h"
#include "testing/once_conformance.h"
#include "testing/outbox_conformance.h"
#include "testing/values_conformance.h"

namespace leasehold::testing {

// By default everything: the fence, idempotency keys and the outbox.
enum class Installed { nothing, fence, everything };

template <class Database>
int count(const typename Database::Connection& connection, const std::string& table) {
  return std::stoi(connection.ask("SELECT count(*) FROM " + table));
}

// Calls the work with what its transaction offers.
template <class Database>
Result<std::string> do_work(const SiteWork& work, typename Database::OpenTransaction& open,
                            std::function<Result<std::int64_t>(OutboxEntry)> send = {}) {
  const auto sql = [&](const std::string& text) { return Database::run_inside(open, text); };
  const auto act = [&] { EXPECT_EQ(sql("INSERT INTO data VALUES('x')"), ""); };
  const auto enter = [&](const Token& token) {
    return Database::Fence::open(open.handle(), "ledger").value().enter(token);
  };
  return work({.act = act, .sql = sql, .enter = enter, .send = std::move(send)});
}

// ---- once ----------------------------------------------------------------------------------

template <class Database>
class SqlOnceUser final : public TransactionalOnceUser {
 public:
  explicit SqlOnceUser(const Database& database) : connection_(database.place()) {}

  Result<OnceResult> run(std::string_view key, std::string_view parameters, const SiteWork& work,
                         const OnceOptions& options) override {
    return once().run(
        key, parameters,
        [&](typename Database::OpenTransaction& open) { return do_work<Database>(work, open); },
        options);
  }
  std::string sql(const std::string& text) override { return connection_.exec(text); }
  Result<std::int64_t> forget_older_than(std::chrono::seconds age) override {
    return once().forget_older_than(age);
  }

 private:
  auto once() const { return Database::Once::open(connection_.get()).value(); }
  const typename Database::Connection connection_;
};

template <class Database>
class SqlOnceUnderTest final : public TransactionalOnceUnderTest {
 public:
  std::unique_ptr<TransactionalOnceUser> connect_user() override {
    return std::make_unique<SqlOnceUser<Database>>(database_);
  }
  int effects() override { return count<Database>(watch_, "data"); }
  int keys() override { return count<Database>(watch_, Database::kKeys); }
  void await_waiter() override { database_.await_waiter(); }
  void make_old(const std::string& key) override {
    EXPECT_EQ(watch_.exec(std::string(Database::kMakeOld) + " WHERE key = '" + key + "'"), "");
  }

 private:
  const Database database_;
  const typename Database::Connection watch_{database_.place()};
};

// ---- behind the fence ----------------------------------------------------------------------

template <class Database>
class SqlFencedOnceUnderTest final : public FencedOnceUnderTest {
 public:
  Result<OnceResult> run(const Token& token, const std::string& key, const std::string& parameters,
                         const SiteWork& work) override {
    using Transaction = typename Database::FencedTransaction;
    return Database::FencedOnce::open(user_.get(), "ledger")
        .value()
        .run(token, key, parameters, [&](Transaction& transaction) {
          return do_work<Database>(work, transaction, [&](OutboxEntry entry) {
            return transaction.send(std::move(entry));
          });
        });
  }
  std::string sql(const std::string& text) override { return user_.exec(text); }
  int effects() override { return count<Database>(user_, "data"); }
  int keys() override { return count<Database>(user_, Database::kKeys); }
  std::string mark() override { return user_.ask(Database::of_the_mark("token")); }
  std::string refused() override { return user_.ask(Database::of_the_mark("refused")); }
  std::vector<std::string> messages() override {
    std::vector<std::string> keys;
    for (int i = 0; i < count<Database>(user_, Database::kMessages); ++i) {
      keys.push_back(user_.ask(std::string("SELECT idempotency_key FROM ") + Database::kMessages +
                               " ORDER BY id LIMIT 1 OFFSET " + std::to_string(i)));
    }
    return keys;
  }
  Status guard() override {
    return Database::guard(user_, "data", ResourceName::parse("ledger").value());
  }
  Status open(const std::string& resource) override {
    const auto opened = Database::FencedOnce::open(user_.get(), resource);
    return opened ? Status() : Status(fail(opened.error()));
  }
  void remove_once() override { EXPECT_EQ(user_.exec(Database::kRemoveOnce), ""); }

 private:
  const Database database_;
  const typename Database::Connection user_{database_.place()};
};

// ---- rows ----------------------------------------------------------------------------------

// The amount of bolts as a value.
template <class Database>
class SqlAmountUser final : public ValueUser {
 public:
  explicit SqlAmountUser(const Database& database) : connection_(database.place()) {}

  Result<Changed<std::string>> change(const ValueChange& change,
                                      const CompareAndSetOptions& options) override {
    auto changed = compare_and_set(
        row(),
        [&](const RowValue& seen) -> Result<RowValue> {
          auto wanted = change(seen.at(0));
          if (!wanted) return fail(std::move(wanted.error()));
          return RowValue{std::move(*wanted)};
        },
        options);
    if (!changed) return fail(std::move(changed.error()));
    return Changed<std::string>{changed->value.at(0).value(), changed->conflicts};
  }
  Result<bool> write_after(const std::function<void()>& meanwhile,
                           const std::string& value) override {
    auto seen = row().read();
    if (!seen) return fail(std::move(seen.error()));
    meanwhile();
    return row().write(*seen, {value});
  }

 private:
  auto row() const {
    return Database::VersionedRow::open(connection_.get(),
                                        {.table = "stock", .key = "bolt", .columns = {"amount"}})
        .value();
  }
  const typename Database::Connection connection_;
};

template <class Database>
class SqlAmountUnderTest final : public ValueUnderTest {
 public:
  std::unique_ptr<ValueUser> connect() override {
    return std::make_unique<SqlAmountUser<Database>>(database_);
  }
  std::string value() override { return watch_.ask("SELECT amount FROM stock WHERE id = 'bolt'"); }
  void put(const std::string& value) override {
    EXPECT_EQ(watch_.exec("UPDATE stock SET amount = " + value +
                          ", version = version + 1 WHERE id = 'bolt'"),
              "");
  }

 private:
  const Database database_;
  const typename Database::Connection watch_{database_.place()};
};

template <class Database>
class SqlRowUnderTest final : public RowUnderTest {
 public:
  Result<RowValue> read(const RowChoice& choice) override {
    auto row = open(choice);
    if (!row) return fail(std::move(row.error()));
    auto seen = row->read();
    if (!seen) return fail(std::move(seen.error()));
    return std::move(seen->value);
  }
  Result<bool> write(const RowChoice& choice, const RowValue& value) override {
    auto row = open(choice);
    if (!row) return fail(std::move(row.error()));
    auto seen = row->read();
    if (!seen) return fail(std::move(seen.error()));
    return row->write(*seen, value);
  }
  Result<Changed<RowValue>> change(
      const std::function<Result<RowValue>(const RowValue&)>& change) override {
    return compare_and_set(open({}).value(), change);
  }
  std::string sql(const std::string& text) override { return user_.exec(text); }
  std::string ask(const std::string& text) override { return user_.ask(text); }

 private:
  auto open(const RowChoice& choice) const {
    return Database::VersionedRow::open(user_.get(), {.table = choice.table,
                                                      .key = choice.key,
                                                      .columns = choice.columns,
                                                      .key_column = choice.key_column,
                                                      .version_column = choice.version_column});
  }
  const Database database_;
  const typename Database::Connection user_{database_.place()};
};

// ---- the outbox ----------------------------------------------------------------------------

template <class Database>
class SqlOutboxUnderTest final : public OutboxUnderTest {
 public:
  SqlOutboxUnderTest() { EXPECT_EQ(user_.exec("CREATE TABLE work(x integer)"), ""); }

  std::unique_ptr<Outbox> open() override {
    return Database::adapters()
        .front()
        .offers.template open<Outbox>(Url::parse(database_.url()).value())
        .value();
  }
  Status put(const std::vector<OutboxEntry>& entries, bool commit) override {
    EXPECT_EQ(user_.exec("BEGIN; INSERT INTO work VALUES(1)"), "");
    for (const OutboxEntry& entry : entries) {
      auto ok = put_alone(entry);
      if (ok) continue;
      EXPECT_EQ(user_.exec("ROLLBACK"), "");
      return ok;
    }
    EXPECT_EQ(user_.exec(commit ? "COMMIT" : "ROLLBACK"), "");
    return {};
  }
  Status put_alone(const OutboxEntry& entry) override {
    return Database::put(user_, entry).map([](std::int64_t) {});
  }
  std::string put_by_sql(const std::string& key, const std::string& payload) override {
    return user_.exec(Database::put(key, payload));
  }
  std::string deliver_all_by_sql() override {
    return user_.exec(std::string("UPDATE ") + Database::kMessages + " SET done_at = put_at");
  }
  std::int64_t refused() override { return Database::marks(user_).value().front().refused; }

 private:
  const Database database_{Installed::nothing};
  const typename Database::Connection user_{database_.place()};
};

}  // namespace leasehold::testing

// Every suite of this header, for one kind of database.
#define LEASEHOLD_SQL_PATTERNS(Name, Database)                                                     \
  INSTANTIATE_TEST_SUITE_P(                                                                        \
      Name, OnceConformance,                                                                       \
      ::testing::Values(MakeOnce([] { return std::make_unique<SqlOnceUnderTest<Database>>(); }))); \
  INSTANTIATE_TEST_SUITE_P(Name, TransactionalOnceConformance,                                     \
                           ::testing::Values(MakeTransactionalOnce(                                \
                               [] { return std::make_unique<SqlOnceUnderTest<Database>>(); })));   \
  INSTANTIATE_TEST_SUITE_P(Name, FencedOnceConformance, ::testing::Values(MakeFencedOnce([] {      \
                             return std::make_unique<SqlFencedOnceUnderTest<Database>>();          \
                           })));                                                                   \
  INSTANTIATE_TEST_SUITE_P(Name, ValuesConformance, ::testing::Values(MakeValue([] {               \
                             return std::make_unique<SqlAmountUnderTest<Database>>();              \
                           })));                                                                   \
  INSTANTIATE_TEST_SUITE_P(                                                                        \
      Name, RowConformance,                                                                        \
      ::testing::Values(MakeRow([] { return std::make_unique<SqlRowUnderTest<Database>>(); })))
