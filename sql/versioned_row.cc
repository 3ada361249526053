#include "leasehold/sql/versioned_row.h"

#include <utility>

#include "kit/try.h"

namespace leasehold::sql {

// Columns that are read are qualified: SQLite takes an unknown quoted name for a text otherwise.
VersionedRow::VersionedRow(Run run, const Table& table, const VersionedRowOptions& options)
    : run_(std::move(run)), key_(options.key), columns_(options.columns.size()) {
  const SqlForm& form = table.form;
  const auto column = [&](const std::string& name) { return table.known_as + "." + quoted(name); };
  const std::string version = column(options.version_column);
  const std::string where =
      " WHERE " + form.infix(column(options.key_column), "=", form.parameter(1));
  read_ = "SELECT " + version;
  write_ = "UPDATE " + table.sql + " SET " + quoted(options.version_column) + " = " +
           form.infix(version, "+", "1");
  int next = 3;
  for (const std::string& name : options.columns) {
    read_ += ", " + column(name);
    write_ += ", " + quoted(name) + " = " + form.parameter(next++);
  }
  read_ += " FROM " + table.sql + where;
  write_ += where + " AND " + form.infix(version, "=", form.parameter(2)) + " RETURNING 1";
}

Result<VersionedRow::Seen> VersionedRow::read() const {
  auto rows = TRY(run_(read_, {&key_}, {.often = true}));
  if (rows.count() != 1 || rows.is_null(0)) {
    return fail(ErrorCode::invalid,
                "there is no row '" + key_ + "', or more than one, or its version is NULL");
  }
  Seen seen{{}, rows.number(0)};
  for (int column = 1; column <= static_cast<int>(columns_); ++column) {
    seen.value.push_back(rows.take(column));
  }
  return seen;
}

Result<bool> VersionedRow::write(const Seen& seen, const Value& value) const {
  if (value.size() != columns_) {
    return fail(ErrorCode::invalid, "there are " + std::to_string(value.size()) + " values for " +
                                        std::to_string(columns_) + " columns");
  }
  Parameters parameters = {&key_, seen.version};
  for (const sql::Value& one : value) parameters.push_back(parameter_of(one));
  // Else a crash could take back what others have read, and the same version would come again.
  const auto rows =
      TRY(run_(write_, parameters, {.writes = true, .often = true, .may_lose = true}));
  return rows.count() > 0;
}

}  // namespace leasehold::sql
