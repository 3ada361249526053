// One statement at a table of the user's, as any SQL database runs it: what is built on it knows
// none of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "leasehold/error.h"
#include "leasehold/sql/form.h"

namespace leasehold::sql {

// As text; nothing is NULL.
using Value = std::optional<std::string>;

// A text must outlive the call. A null pointer is NULL.
using Parameter = std::variant<std::int64_t, const std::string*>;
using Parameters = std::vector<Parameter>;

inline Parameter parameter_of(const Value& value) {
  return value ? &*value : nullptr;
}

// All rows of one answer.
class Rows {
 public:
  Rows() = default;
  // `values` row by row.
  Rows(int columns, std::vector<Value> values) : columns_(columns), values_(std::move(values)) {}

  int count() const { return static_cast<int>(values_.size()) / columns_; }
  int width() const { return columns_; }
  const Value& value(int column, int row = 0) const { return values_[place(column, row)]; }
  Value take(int column, int row = 0) { return std::move(values_[place(column, row)]); }
  bool is_null(int column, int row = 0) const { return !value(column, row); }
  // Empty if it is NULL.
  std::string_view text(int column, int row = 0) const {
    const Value& it = value(column, row);
    return it ? std::string_view(*it) : std::string_view();
  }
  // 0 if it is NULL or begins with none.
  std::int64_t number(int column, int row = 0) const;
  bool flag(int column, int row = 0) const {
    return text(column, row) == "t" || text(column, row) == "1";
  }

 private:
  std::size_t place(int column, int row) const {
    return static_cast<std::size_t>(row) * static_cast<std::size_t>(columns_) +
           static_cast<std::size_t>(column);
  }

  int columns_ = 1;
  std::vector<Value> values_;
};

// What a database must know of a statement.
struct Purpose {
  // It ends with RETURNING and a list. What it writes, or finds written, must be as durable as the
  // connection's own commits when it is answered.
  bool writes = false;
  bool often = false;  // it is likely to come again, and may be prepared
  // If another transaction came in between, and no transaction of the user's is open, there is no
  // row, and no failure.
  bool may_lose = false;
};

// Fails with `invalid` for a value, a column or a table that the database does not take, else with
// `unavailable` or `outcome_unknown`.
using Run =
    std::function<Result<Rows>(const std::string& sql, const Parameters& parameters, Purpose)>;

// A table of the user's.
struct Table {
  std::string name;      // as the user is told
  std::string sql;       // as a statement names it, quoted
  std::string known_as;  // as its columns are qualified in that statement, quoted
  SqlForm form;
};

}  // namespace leasehold::sql
