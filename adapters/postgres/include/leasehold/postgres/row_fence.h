// A fence in one statement, at a table of a PostgreSQL database of your own: see
// leasehold/sql/row_fence.h. Outside a transaction, enter() and write() prepare their statements on
// the connection.
#pragma once

#include <string_view>
#include <utility>

#include "leasehold/error.h"
#include "leasehold/postgres/fence.h"
#include "leasehold/sql/row_fence.h"

namespace leasehold::postgres {

// Adds the columns fence, fence_lineage, fence_request and fence_refused to `table`, unless they
// are there. Fails with `invalid` for a table that is not there; `unavailable` if it cannot be
// changed.
[[nodiscard]] Status add_fence_columns(pg_conn* connection, std::string_view table);

class RowFence : public sql::RowFence {
 public:
  // `table` is written as in SQL, `key` is the column that names a row, one row each. Fails with
  // `invalid` if the table or one of the columns is not there.
  [[nodiscard]] static Result<RowFence> open(pg_conn* connection, std::string_view table,
                                             std::string_view key = "id");

 private:
  RowFence(sql::Run run, sql::Table table, std::string_view key)
      : sql::RowFence(std::move(run), std::move(table), key) {}
};

}  // namespace leasehold::postgres
