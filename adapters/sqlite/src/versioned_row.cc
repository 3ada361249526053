#include "leasehold/sqlite/versioned_row.h"

#include "database.h"
#include "guard.h"
#include "kit/try.h"

namespace leasehold::sqlite {

Result<VersionedRow> VersionedRow::open(sqlite3* connection, const VersionedRowOptions& options) {
  const auto table = TRY(user_table(Connection(connection), options.table));
  return VersionedRow(run_for_user(Connection(connection)), table, options);
}

}  // namespace leasehold::sqlite
