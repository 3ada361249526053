// A row of your own table that has a version: for compare_and_set(), a pattern that needs no lock.
//
//   UPDATE stock SET amount = $3, version = version + 1 WHERE id = $1 AND version = $2
//
// No row changed: somebody else has written since the version was read. Every program that writes
// the row must add one to its version, or its writes go unseen and may be lost. Deleting a row and
// inserting it again with the same version does that too.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "leasehold/compare_and_set.h"
#include "leasehold/error.h"
#include "leasehold/sql/statement.h"

namespace leasehold::sql {

struct VersionedRowOptions {
  std::string table;                       // PostgreSQL: as in SQL, "stock" or "shop.stock"
  std::string key;                         // which row, as text
  std::vector<std::string> columns;        // what is read and written
  std::string key_column = "id";           // unique
  std::string version_column = "version";  // an integer, not NULL
};

// A value that may be copied; it neither owns nor caches anything of the connection, which must
// outlive its calls. As thread safe as the connection: not to be used by two threads at once. Calls
// block as those of Fence do. The database opens it: leasehold::sqlite::VersionedRow,
// leasehold::postgres::VersionedRow.
class VersionedRow {
 public:
  // Of the columns, in their order.
  using Value = std::vector<sql::Value>;
  struct Seen {
    Value value;
    std::int64_t version = 0;
  };

  // Fails with `invalid` if the row or a column is not there, there are several rows of that key,
  // or the version is NULL; `unavailable` if the database says no.
  [[nodiscard]] Result<Seen> read() const;

  // True: written, and the version is one more. False: it has another version by now, or is not
  // there any more; nothing has changed.
  // Fails with `invalid` for a value that the column does not take, or too few or many of them;
  // `unavailable` if nothing was written; `outcome_unknown` if the disk failed or the connection
  // was lost during the write.
  // In a transaction of yours it is written when that commits.
  [[nodiscard]] Result<bool> write(const Seen& seen, const Value& value) const;

 protected:
  VersionedRow(Run run, const Table& table, const VersionedRowOptions& options);

 private:
  Run run_;
  std::string key_;
  std::size_t columns_;
  std::string read_;
  std::string write_;
};

static_assert(VersionedCell<VersionedRow>);

}  // namespace leasehold::sql
