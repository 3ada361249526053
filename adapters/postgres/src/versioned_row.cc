#include "leasehold/postgres/versioned_row.h"

#include "fence_functions.h"
#include "kit/try.h"
#include "session.h"

namespace leasehold::postgres {

using sql::VersionedRowSql;

Result<VersionedRow> VersionedRow::open(pg_conn* connection, VersionedRowOptions options) {
  const Session session(connection);
  TRY(session.check());
  auto table = TRY(find_table(session, options.table));
  VersionedRowSql sql(table, table, options.key_column, options.version_column, options.columns,
                      kSqlForm);
  return VersionedRow(connection, std::move(options), std::move(sql));
}

Result<VersionedRow::Seen> VersionedRow::read() const {
  const Session session(connection_);
  TRY(session.check());
  const auto rows = TRY(session.run_often(sql_.read(), {options_.key.c_str()}));
  if (rows.count() != 1 || rows.is_null(0)) {
    return fail(sql::no_versioned_row(options_.key));
  }
  Seen seen{{}, rows.number(0)};
  for (int column = 1; column <= static_cast<int>(options_.columns.size()); ++column) {
    seen.value.emplace_back();
    if (!rows.is_null(column)) seen.value.back() = std::string(rows.text(column));
  }
  return seen;
}

Result<bool> VersionedRow::write(const Seen& seen, const Value& value) const {
  const Session session(connection_);
  TRY(session.check());
  TRY(sql_.check_values(value.size()));
  const std::string version = std::to_string(seen.version);
  std::vector<const char*> parameters = {options_.key.c_str(), version.c_str()};
  for (const auto& one : value) {
    if (one && one->find('\0') != std::string::npos) {
      return fail(ErrorCode::invalid, "a value contains a zero byte");
    }
    parameters.push_back(one ? one->c_str() : nullptr);
  }
  const bool inside = PQtransactionStatus(connection_) != PQTRANS_IDLE;
  // Else a crash could take back what others have read, and the same version would come again.
  const auto rows = session.run_often(sql_.write() + ", " + kDurably, parameters);
  if (rows) return rows->count() > 0;
  // Where a session is REPEATABLE READ by default, the server itself says that somebody was faster.
  if (!inside && is_conflict(rows.error())) return false;
  return fail(rows.error());
}

}  // namespace leasehold::postgres
