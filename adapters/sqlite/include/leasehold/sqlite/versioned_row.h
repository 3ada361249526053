// A row of your own table that has a version: for compare_and_set(), a way not to need a lock.
//
//   UPDATE stock SET amount = ?3, version = version + 1 WHERE id = ?1 AND version = ?2
//
// No row changed: somebody else has written since the version was read. Every program that writes
// the row must add one to its version, or its writes go unseen and may be lost. Deleting a row and
// inserting it again with the same version does that too.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "leasehold/compare_and_set.h"
#include "leasehold/error.h"
#include "leasehold/sql/versioned_row.h"

struct sqlite3;

namespace leasehold::sqlite {

struct VersionedRowOptions {
  std::string table;                       // in database "main"
  std::string key;                         // which row, as text
  std::vector<std::string> columns;        // what is read and written
  std::string key_column = "id";           // unique
  std::string version_column = "version";  // an integer, not NULL
};

// A value that may be copied; it neither owns nor caches anything of the connection, which must
// outlive its calls. As thread safe as the connection: not to be used by two threads at once.
// Calls block as long as the connection's busy handler.
class VersionedRow {
 public:
  // Of the columns, in their order; values are texts, nothing is NULL.
  using Value = std::vector<std::optional<std::string>>;
  struct Seen {
    Value value;
    std::int64_t version = 0;
  };

  // Fails with `invalid` for a table that is not there.
  [[nodiscard]] static Result<VersionedRow> open(sqlite3* connection, VersionedRowOptions options);

  // Fails with `invalid` if the row or a column is not there, there are several rows of that key,
  // or the version is NULL; `unavailable` if the database says no.
  [[nodiscard]] Result<Seen> read() const;

  // True: written, and the version is one more. False: it has another version by now, or is not
  // there any more; nothing has changed.
  // Fails with `invalid` for a value that the column does not take, or too few or many of them;
  // `unavailable` if nothing was written; `outcome_unknown` if the disk failed during the
  // write.
  // In a transaction of yours it is written when that commits.
  [[nodiscard]] Result<bool> write(const Seen& seen, const Value& value) const;

 private:
  VersionedRow(sqlite3* connection, VersionedRowOptions options, sql::VersionedRowSql sql)
      : connection_(connection), options_(std::move(options)), sql_(std::move(sql)) {}

  sqlite3* connection_;
  VersionedRowOptions options_;
  sql::VersionedRowSql sql_;
};

static_assert(VersionedCell<VersionedRow>);

}  // namespace leasehold::sqlite
