// A row with a version, of a table of a SQLite database of your own: see
// leasehold/sql/versioned_row.h.
#pragma once

#include <utility>

#include "leasehold/error.h"
#include "leasehold/sql/versioned_row.h"

struct sqlite3;

namespace leasehold::sqlite {

using VersionedRowOptions = sql::VersionedRowOptions;

class VersionedRow : public sql::VersionedRow {
 public:
  // The table is in database "main". Fails with `invalid` if it is not there.
  [[nodiscard]] static Result<VersionedRow> open(sqlite3* connection,
                                                 const VersionedRowOptions& options);

 private:
  VersionedRow(sql::Run run, const sql::Table& table, const VersionedRowOptions& options)
      : sql::VersionedRow(std::move(run), table, options) {}
};

}  // namespace leasehold::sqlite
