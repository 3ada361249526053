#include "leasehold/postgres/row_fence.h"

#include "fence_functions.h"
#include "kit/try.h"
#include "statements.h"

namespace leasehold::postgres {

Status add_fence_columns(pg_conn* connection, std::string_view table) {
  const Session session(connection);
  const auto found = TRY(user_table(session, table));
  TRY(session.run("ALTER TABLE " + found.sql +
                      " ADD COLUMN IF NOT EXISTS fence bigint,"
                      " ADD COLUMN IF NOT EXISTS fence_lineage text,"
                      " ADD COLUMN IF NOT EXISTS fence_request text,"
                      " ADD COLUMN IF NOT EXISTS fence_refused bigint NOT NULL DEFAULT 0",
                  {}));
  return {};
}

Result<RowFence> RowFence::open(pg_conn* connection, std::string_view table, std::string_view key) {
  const Session session(connection);
  auto found = TRY(user_table(session, table));
  const std::string wanted(key);
  auto missing = TRY(session.run(
      "SELECT w FROM pg_catalog.unnest(ARRAY[$2, 'fence', 'fence_lineage', 'fence_request', "
      "'fence_refused']) w"
      " WHERE NOT EXISTS (SELECT 1 FROM pg_catalog.pg_attribute"
      " WHERE attrelid OPERATOR(pg_catalog.=) $1::pg_catalog.regclass::pg_catalog.oid"
      " AND attname OPERATOR(pg_catalog.=) w AND attnum OPERATOR(pg_catalog.>) 0"
      " AND NOT attisdropped)",
      {found.name.c_str(), wanted.c_str()}));
  if (missing.count() > 0) return fail(sql::no_fence_column(found, missing.text(0)));
  return RowFence(run_for_user(connection), std::move(found), key);
}

}  // namespace leasehold::postgres
