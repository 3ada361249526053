#include "leasehold/sqlite/versioned_row.h"

#include "database.h"
#include "guard.h"
#include "kit/try.h"
#include "leasehold/sql/row_fence.h"

namespace leasehold::sqlite {

using sql::RowFenceSql;
using sql::VersionedRowSql;

Result<VersionedRow> VersionedRow::open(sqlite3* connection, VersionedRowOptions options) {
  auto table = TRY(find_table(Connection(connection), options.table));
  const std::string quoted = RowFenceSql::quoted(table);
  VersionedRowSql sql("main." + quoted, quoted, options.key_column, options.version_column,
                      options.columns, {.sign = '?'});
  return VersionedRow(connection, std::move(options), std::move(sql));
}

Result<VersionedRow::Seen> VersionedRow::read() const {
  const Connection connection(connection_);
  auto select = connection.prepare(sql_.read());
  if (!select) return fail(write_error(connection, std::move(select.error())));
  auto row = TRY(select->bind(1, options_.key).step());
  if (!row || select->is_null(0)) return fail(sql::no_versioned_row(options_.key));
  Seen seen{{}, select->integer(0)};
  for (int column = 1; column <= static_cast<int>(options_.columns.size()); ++column) {
    seen.value.emplace_back();
    if (!select->is_null(column)) seen.value.back() = std::string(select->text(column));
  }
  auto another = TRY(select->step());
  if (another) return fail(sql::no_versioned_row(options_.key));
  return seen;
}

Result<bool> VersionedRow::write(const Seen& seen, const Value& value) const {
  const Connection connection(connection_);
  TRY(sql_.check_values(value.size()));
  auto update = connection.prepare(sql_.write());
  if (!update) return fail(write_error(connection, std::move(update.error())));
  update->bind(1, options_.key).bind(2, seen.version);
  int next = 3;
  for (const auto& one : value) {
    if (one) {
      update->bind(next++, std::string_view(*one));
    } else {
      update->bind_null(next++);
    }
  }
  // Only the end of the statement commits it.
  bool any = false;
  for (auto row = update->step(); !row || *row; row = update->step()) {
    if (!row) return fail(write_error(connection, std::move(row.error())));
    any = true;
  }
  return any;
}

}  // namespace leasehold::sqlite
