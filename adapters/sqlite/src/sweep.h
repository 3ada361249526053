// What is over leaves nothing behind.
#pragma once

#include <string>

#include "store_file.h"

namespace leasehold::sqlite {

// Deletes the rows of a table that have been over for a minute: until then a call may be repeated
// whose answer was lost. One step looks at a few rows, in the order of their keys, and goes on
// where the last one of any process has stopped, so that no index has to be kept in step with every
// grant. Rows that lie side by side are on the same pages, which makes a step cheap.
//
// Not thread safe. Each call is inside a transaction of its caller.
class Sweep {
 public:
  // Whoever grants a number that these divide takes a step. Per grant two rows are looked at, and
  // at most one is made: so what is to be swept does not pile up.
  static constexpr std::int64_t kGrantsPerStep = 32;
  static constexpr std::int64_t kRowsPerStep = 2 * kGrantsPerStep;

  struct What {
    std::string table;
    std::string key;
    std::string cursor;   // the column of table `store` that says where the last step has stopped
    std::string is_over;  // ?2: now, ?3: a minute
  };
  Sweep(StoreFile& file, const What& what);

  [[nodiscard]] Status step(std::int64_t at);

 private:
  Result<Statement*> sql(Prepared& statement) { return statement.in(file_.connection()); }

  StoreFile& file_;
  Prepared end_of_step_;
  Prepared sweep_;
  Prepared stop_at_;
};

}  // namespace leasehold::sqlite
