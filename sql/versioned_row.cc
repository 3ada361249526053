#include "leasehold/sql/versioned_row.h"

#include "leasehold/sql/row_fence.h"

namespace leasehold::sql {

// Columns that are read are qualified: SQLite takes an unknown quoted name for a text otherwise.
VersionedRowSql::VersionedRowSql(const std::string& table, const std::string& known_as,
                                 const std::string& key, const std::string& version,
                                 const std::vector<std::string>& columns, SqlForm form)
    : columns_(columns.size()) {
  const auto column = [&](const std::string& name) {
    return known_as + "." + RowFenceSql::quoted(name);
  };
  const std::string where = " WHERE " + form.infix(column(key), "=", form.parameter(1));
  read_ = "SELECT " + column(version);
  write_ = "UPDATE " + table + " SET " + RowFenceSql::quoted(version) + " = " +
           form.infix(column(version), "+", "1");
  int next = 3;
  for (const std::string& name : columns) {
    read_ += ", " + column(name);
    write_ += ", " + RowFenceSql::quoted(name) + " = " + form.parameter(next++);
  }
  read_ += " FROM " + table + where;
  write_ += where + " AND " + form.infix(column(version), "=", form.parameter(2)) + " RETURNING 1";
}

Status VersionedRowSql::check_values(std::size_t count) const {
  if (count == columns_) return {};
  return fail(ErrorCode::invalid, "there are " + std::to_string(count) + " values for " +
                                      std::to_string(columns_) + " columns");
}

Error no_versioned_row(const std::string& key) {
  return Error(ErrorCode::invalid,
               "there is no row '" + key + "', or more than one, or its version is NULL");
}

}  // namespace leasehold::sql
