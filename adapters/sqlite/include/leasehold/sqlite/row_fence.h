// A fence in one statement, at a table of a SQLite database of your own: see
// leasehold/sql/row_fence.h. Parameters are written ?1, ?2 and so on.
#pragma once

#include <string_view>
#include <utility>

#include "leasehold/error.h"
#include "leasehold/sql/row_fence.h"
#include "leasehold/sqlite/fence.h"

namespace leasehold::sqlite {

// Adds the columns fence, fence_lineage, fence_request and fence_refused to `table`, unless they
// are there. Fails with `invalid` inside a transaction or for a table that is not there;
// `unavailable` if it cannot be changed.
[[nodiscard]] Status add_fence_columns(sqlite3* db, std::string_view table);

class RowFence : public sql::RowFence {
 public:
  // `table` is in database "main", `key` the column that names a row, one row each. Fails with
  // `invalid` if the table or one of the columns is not there.
  [[nodiscard]] static Result<RowFence> open(sqlite3* db, std::string_view table,
                                             std::string_view key = "id");

 private:
  RowFence(sql::Run run, sql::Table table, std::string_view key)
      : sql::RowFence(std::move(run), std::move(table), key) {}
};

}  // namespace leasehold::sqlite
