// The SQL of a row that has a version, for databases that know RETURNING.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "leasehold/error.h"
#include "leasehold/sql/form.h"

namespace leasehold::sql {

class VersionedRowSql {
 public:
  // `table` is quoted already, and so is `known_as`, which it is called in its own statement.
  VersionedRowSql(const std::string& table, const std::string& known_as, const std::string& key,
                  const std::string& version, const std::vector<std::string>& columns,
                  SqlForm form);

  // Parameter 1 is the row's key. Gives the version, then the columns.
  const std::string& read() const { return read_; }
  // Parameters: 1 the row's key, 2 the version that was seen, from 3 on the columns. No row:
  // another version, or no such row.
  const std::string& write() const { return write_; }

  // `invalid` unless there are as many values as columns.
  [[nodiscard]] Status check_values(std::size_t count) const;

 private:
  std::size_t columns_;
  std::string read_;
  std::string write_;
};

// `invalid`, for a key of which there is not one row with a version.
Error no_versioned_row(const std::string& key);

}  // namespace leasehold::sql
