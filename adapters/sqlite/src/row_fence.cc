#include "leasehold/sqlite/row_fence.h"

#include "database.h"
#include "guard.h"
#include "kit/try.h"

namespace leasehold::sqlite {
namespace {

Result<bool> has_column(Connection connection, const std::string& table, std::string_view column) {
  auto select = TRY(connection.prepare(
      "SELECT 1 FROM pragma_table_info(?1, 'main') WHERE name = ?2 COLLATE NOCASE"));
  return select.bind(1, table).bind(2, column).step();
}

Status check_column(Connection connection, const sql::Table& table, std::string_view column) {
  auto there = TRY(has_column(connection, table.name, column));
  if (there) return {};
  return fail(sql::no_fence_column(table, column));
}

Status add_columns(Connection connection, std::string_view table) {
  auto transaction = TRY(Transaction::begin(connection));
  auto found = TRY(user_table(connection, table));
  for (const std::string column : sql::kFenceColumns) {
    auto there = TRY(has_column(connection, found.name, column));
    if (there) continue;
    const char* type = column == "fence"           ? " INTEGER"
                       : column == "fence_refused" ? " INTEGER NOT NULL DEFAULT 0"
                                                   : " TEXT";
    TRY(connection.exec(("ALTER TABLE " + found.sql + " ADD COLUMN " + column + type).c_str()));
  }
  return transaction.commit();
}

}  // namespace

Status add_fence_columns(sqlite3* db, std::string_view table) {
  const Connection connection(db);
  if (connection.in_transaction()) {
    return fail(ErrorCode::invalid,
                "adding columns needs a connection without an open transaction");
  }
  return connection.durably([&] { return add_columns(connection, table); });
}

Result<RowFence> RowFence::open(sqlite3* db, std::string_view table, std::string_view key) {
  const Connection connection(db);
  auto found = TRY(user_table(connection, table));
  TRY(check_column(connection, found, key));
  for (const char* column : sql::kFenceColumns) TRY(check_column(connection, found, column));
  return RowFence(run_for_user(connection), std::move(found), key);
}

}  // namespace leasehold::sqlite
