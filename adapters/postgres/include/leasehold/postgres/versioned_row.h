// A row with a version, of a table of a PostgreSQL database of your own: see
// leasehold/sql/versioned_row.h.
#pragma once

#include <utility>

#include "leasehold/error.h"
#include "leasehold/sql/versioned_row.h"

struct pg_conn;  // libpq's connection, which libpq calls PGconn

namespace leasehold::postgres {

using VersionedRowOptions = sql::VersionedRowOptions;

class VersionedRow : public sql::VersionedRow {
 public:
  // Fails with `invalid` for a table that is not there.
  [[nodiscard]] static Result<VersionedRow> open(pg_conn* connection,
                                                 const VersionedRowOptions& options);

 private:
  VersionedRow(sql::Run run, const sql::Table& table, const VersionedRowOptions& options)
      : sql::VersionedRow(std::move(run), table, options) {}
};

}  // namespace leasehold::postgres
