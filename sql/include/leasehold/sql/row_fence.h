// The SQL of a fence whose mark is in the guarded row itself, for databases that know RETURNING.
//
// Parameters: 1 the row's key, 2 the token's number, 3 its lineage, 4 its request. The columns of
// the mark: fence, fence_lineage, fence_request, fence_refused. A mark without a request was
// adopted: its number is the lowest to let in.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "leasehold/error.h"
#include "leasehold/sql/form.h"

namespace leasehold::sql {

class RowFenceSql {
 public:
  // `table` is quoted already, and so is `known_as`, which it is called in its own statement.
  // Columns that are read are qualified: SQLite takes an unknown quoted name for a text otherwise.
  RowFenceSql(std::string table, std::string known_as, const std::string& key, SqlForm form)
      : table_(std::move(table)),
        known_as_(std::move(known_as)),
        key_(known_as_ + "." + quoted(key)),
        form_(form) {}

  // Sets the mark, and the columns to the parameters from 5 on. No row changed: refused, or not
  // there. `invalid` if one of the columns is of the mark: nobody but the fence sets those.
  [[nodiscard]] Result<std::string> write(const std::vector<std::string>& columns,
                                          bool single) const;
  // Sets the mark; a number, then those columns. No row: as above.
  std::string enter(const std::vector<std::string>& columns, bool single) const;
  // Counts, if these parameters are refused: fence, fence_lineage.
  std::string count_refusal(bool single) const;
  // Resource, lineage, token, request, refusals and claim as every fence has them, then `fence`.
  std::string marks() const;
  std::string mark() const { return marks_where(" WHERE " + is_key()); }
  // Parameters: key, the number to let in from on, lineage. No row: it would lower the mark, or the
  // row is not there.
  std::string adopt() const;

  static std::string quoted(const std::string& identifier);

 private:
  std::string parameter(int number) const { return form_.parameter(number); }
  // The column compared with that parameter.
  std::string compared(const char* column, const char* sql_operator, int number) const {
    return form_.infix(column, sql_operator, parameter(number));
  }
  std::string is_key() const { return form_.infix(key_, "=", parameter(1)); }
  std::string update(bool single, const std::string& more) const;
  std::string admits(bool single) const;
  std::string marks_where(const std::string& where) const;

  std::string table_;
  std::string known_as_;
  std::string key_;
  SqlForm form_;
};

}  // namespace leasehold::sql
