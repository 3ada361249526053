#include "leasehold/postgres/versioned_row.h"

#include "fence_functions.h"
#include "kit/try.h"
#include "statements.h"

namespace leasehold::postgres {

Result<VersionedRow> VersionedRow::open(pg_conn* connection, const VersionedRowOptions& options) {
  const auto table = TRY(user_table(Session(connection), options.table));
  return VersionedRow(run_for_user(connection), table, options);
}

}  // namespace leasehold::postgres
