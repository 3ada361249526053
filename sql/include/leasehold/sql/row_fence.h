// A fence in one statement: the mark is in the guarded row itself, and every write to that row says
// whose it is. No transaction is needed, and no function or trigger.
//
//   UPDATE orders SET paid = true, fence = $2, fence_lineage = $3, fence_request = $4
//   WHERE id = $1 AND (fence IS NULL OR fence <= $2)
//     AND (fence_lineage IS NULL OR fence_lineage = $3)
//     AND (fence < $2 OR fence_request IS NULL OR fence_request = $4)
//
// No row changed: refused, or there is no such row. What it is worth:
// - Reads are fenced only by enter(). A value that was read in another way before writing may be
//   stale, and the write lands on what somebody else wrote meanwhile: enter first, then read, then
//   write.
// - The same token and request id pass again, so that a holder's own delayed write may land on its
//   later one. Where that matters use a transaction (Fence), or a new token for each write
//   (Entry::single).
// - With only a number (`WHERE id = $1 AND fence <= $2`, by hand) it is weaker: a store that gives
//   a number twice and a store that was replaced are not noticed.
// - The row guards itself. Deleting it deletes its mark, and its number may then come again.
// - A statement that does not name the columns is not refused; guard_table() is for that.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "leasehold/enter_options.h"
#include "leasehold/error.h"
#include "leasehold/fence_admin.h"
#include "leasehold/sql/statement.h"
#include "leasehold/token.h"

namespace leasehold::sql {

// The columns of the mark.
inline constexpr std::array<const char*, 4> kFenceColumns = {"fence", "fence_lineage",
                                                             "fence_request", "fence_refused"};

// The rows of one table, each its own resource, whose name is its key as text. A small value that
// may be copied; as thread safe as the connection, which must outlive its calls. Calls block as
// those of Fence do. Values are texts, which the database turns into the column's type; nothing is
// NULL. The database opens it: leasehold::sqlite::RowFence, leasehold::postgres::RowFence.
class RowFence {
 public:
  using Value = sql::Value;
  using Values = std::vector<std::pair<std::string, Value>>;  // column, value

  // Raises the row's mark, and gives these columns of it: the first step of a holder that reads.
  [[nodiscard]] Result<std::vector<Value>> enter(std::string_view key, const Token& token,
                                                 const std::vector<std::string>& columns = {},
                                                 Entry entry = Entry::repeatable) const;

  // Raises the row's mark and sets columns, in one statement.
  //
  // enter() and write() fail with
  // - `fenced_out`: refused, and counted in the row; error.refusal has both numbers. Nothing else
  //   was written. In a transaction of yours the count is undone if you roll back.
  // - `invalid`: a wrong key (1 to 512 bytes of UTF-8 without control characters), a row or column
  //   that is not there or of the mark, a value that the column does not take.
  // - `unavailable`, `outcome_unknown`: as a Fence. The same call may be repeated; with
  // Entry::single
  //   the repeat of a write that was done is `fenced_out`, and counted.
  [[nodiscard]] Status write(std::string_view key, const Token& token, const Values& values,
                             Entry entry = Entry::repeatable) const;

  // The statement of write(), for a program that prepares it once and runs it often. Parameters: 1
  // the key, 2 the token's number, 3 its lineage, 4 its request, then the columns in this order. No
  // row changed: refused and not counted, or there is no such row; write() tells which. Fails with
  // `invalid` for a column of the mark.
  [[nodiscard]] Result<std::string> write_sql(const std::vector<std::string>& columns,
                                              Entry entry = Entry::repeatable) const;

  // All rows with a mark or a refusal, by key.
  [[nodiscard]] Result<std::vector<FenceMark>> marks() const;

  // Lets `lineage` in from `at_least` on, and nobody else, for one row. `invalid` if that would
  // lower the mark of the same lineage, or the row is not there.
  [[nodiscard]] Status adopt(std::string_view key, const Lineage& lineage,
                             TokenNumber at_least) const;

 protected:
  // The columns are there. `key` is the one that names a row.
  RowFence(Run run, Table table, std::string_view key);

 private:
  class Statements;
  Error refused(const ResourceName& key, const Token& token, Entry entry) const;

  Run run_;
  Table table_;
  std::string key_;  // qualified and quoted
};

// `invalid`, for a table without a column that a row fence needs.
Error no_fence_column(const Table& table, std::string_view column);

}  // namespace leasehold::sql
