// What compare-and-set must do with a value of every store, and with a row of a table. A store
// plugs in with a ValueUnderTest and one line:
//
//   INSTANTIATE_TEST_SUITE_P(Etcd, ValuesConformance, ::testing::Values(make));
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "leasehold/compare_and_set.h"

namespace leasehold::testing {

// From what is seen, as text, to what is wanted; nothing: there is no value yet.
using ValueChange = std::function<Result<std::string>(const std::optional<std::string>&)>;

// One connection, for one thread at a time.
class ValueUser {
 public:
  virtual ~ValueUser() = default;
  virtual Result<Changed<std::string>> change(const ValueChange& change,
                                              const CompareAndSetOptions& options = {}) = 0;
  // Reads, lets something happen, and writes; false: the store saw that it happened.
  virtual Result<bool> write_after(const std::function<void()>& meanwhile,
                                   const std::string& value) = 0;
};

// A value of one test: "100", or missing.
class ValueUnderTest {
 public:
  virtual ~ValueUnderTest() = default;
  virtual std::unique_ptr<ValueUser> connect() = 0;
  // As another program reads and writes it, by the rules of this store.
  virtual std::string value() = 0;
  virtual void put(const std::string& value) = 0;
  // False: a value that is what it was before counts as unchanged.
  virtual bool has_versions() { return true; }
};
using MakeValue = std::function<std::unique_ptr<ValueUnderTest>()>;

class ValuesConformance : public ::testing::TestWithParam<MakeValue> {
 protected:
  void SetUp() override {
    under_ = GetParam()();
    user_ = under_->connect();
  }

  std::unique_ptr<ValueUnderTest> under_;
  std::unique_ptr<ValueUser> user_;
};

// What a VersionedCell does, whichever it is. Texts are its values.
template <VersionedCell Cell>
class CellUser final : public ValueUser {
 public:
  explicit CellUser(Cell cell) : cell_(std::move(cell)) {}

  Result<Changed<std::string>> change(const ValueChange& change,
                                      const CompareAndSetOptions& options) override {
    return compare_and_set(cell_, change, options);
  }
  Result<bool> write_after(const std::function<void()>& meanwhile,
                           const std::string& value) override {
    auto seen = cell_.read();
    if (!seen) return fail(std::move(seen.error()));
    meanwhile();
    return cell_.write(*seen, value);
  }

 private:
  const Cell cell_;
};

// ---- rows ----------------------------------------------------------------------------------

using RowValue = std::vector<std::optional<std::string>>;

// Which row, and what of it.
struct RowChoice {
  std::string table = "stock";
  std::string key = "bolt";
  std::vector<std::string> columns = {"amount"};
  std::string key_column = "id";
  std::string version_column = "version";
};

// A database with kStockTable, and one connection of the user's.
class RowUnderTest {
 public:
  virtual ~RowUnderTest() = default;
  virtual Result<RowValue> read(const RowChoice& row) = 0;
  // Over what was just read.
  virtual Result<bool> write(const RowChoice& row, const RowValue& value) = 0;
  virtual Result<Changed<RowValue>> change(
      const std::function<Result<RowValue>(const RowValue&)>& change) = 0;
  // Empty, or the database's own words.
  virtual std::string sql(const std::string& text) = 0;
  // The first column of the first row.
  virtual std::string ask(const std::string& text) = 0;
};
using MakeRow = std::function<std::unique_ptr<RowUnderTest>()>;

inline constexpr const char* kStockTable =
    "CREATE TABLE stock(id text UNIQUE, amount integer CHECK (amount >= 0),"
    " version bigint DEFAULT 0);"
    "INSERT INTO stock(id, amount) VALUES('bolt', 100), ('nut', 5)";

class RowConformance : public ::testing::TestWithParam<MakeRow> {
 protected:
  void SetUp() override { under_ = GetParam()(); }
  std::string stock() { return under_->ask("SELECT amount FROM stock WHERE id = 'bolt'"); }

  std::unique_ptr<RowUnderTest> under_;
};

}  // namespace leasehold::testing
