// Idempotency keys: a way not to need a lock. The key, its parameters and its result are stored in
// the transaction that does the work, so that a repeat finds the result and does nothing.
//
// What the work does outside this database (mail, another service) is not covered: a crash before
// the commit makes it happen again. Hand the key on to the other side instead.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "leasehold/error.h"
#include "leasehold/once.h"
#include "leasehold/sql/once_work.h"
#include "leasehold/sqlite/transaction.h"

struct sqlite3;

namespace leasehold::sqlite {

// Creates Once's table in database "main". Doing it again changes nothing. Fails with `invalid`
// inside a transaction and for a lock store's file, `unavailable` if it cannot be written or has
// another version.
[[nodiscard]] Status install_once(sqlite3* db);

// A small value that may be copied; neither owns nor caches anything of the connection. As thread
// safe as the connection: not to be used by two threads at once.
class Once {
 public:
  // Fails with `unavailable` if Once is not installed in database "main" or has another version.
  [[nodiscard]] static Result<Once> open(sqlite3* db);

  // Runs work(OpenTransaction&), which returns Result<std::string>, unless it has succeeded under
  // this key before; stores its result and commits both together. Results may hold any bytes, as
  // may parameters. A stored result is answered without waiting for writers, in WAL mode; with
  // synchronous FULL the log is synced first, since who stored it may have died before it was.
  //
  // Blocks up to options.wait for the write lock, then for as long as the work takes. The
  // connection's busy timeout does not count here and is as before when the work runs; a busy
  // handler of your own set by sqlite3_busy_handler does, in addition to options.wait.
  //
  // Fails with
  // - `invalid`: the key is wrong (1 to 512 bytes of UTF-8 without control characters) or was used
  //   with other parameters; parameters or result are too long; a transaction is open already; the
  //   work ended the transaction or broke a deferred constraint.
  // - `busy` (wait 0) or `timeout`: somebody else is writing. `cancelled`: stop was requested.
  // - `unavailable`: the commit was not done. `outcome_unknown`: the disk failed during it;
  //   repeating with the same key finds out.
  // - the work's own error. An error or an exception rolls back and stores nothing, so that the
  //   next call runs the work again.
  template <sql::OnceWork<OpenTransaction> Work>
  [[nodiscard]] Result<OnceResult> run(std::string_view key, std::string_view parameters,
                                       Work&& work, const OnceOptions& options = {}) const {
    return sql::run_once<OpenTransaction, detail::OwnedTransaction>(
        begin(key, parameters, options), work,
        [&](const std::string& result) { return store(key, parameters, result); });
  }

  // Deletes results stored more than `age` ago by the wall clock, and tells how many. A key that
  // is forgotten would run again: choose an age beyond the last possible repeat.
  // Fails with `invalid` inside a transaction, `unavailable` if it cannot be written.
  [[nodiscard]] Result<std::int64_t> forget_older_than(std::chrono::seconds age) const;

 private:
  using Begun = sql::OnceBegun<detail::OwnedTransaction>;

  explicit Once(sqlite3* db) : db_(db) {}
  Result<Begun> begin(std::string_view key, std::string_view parameters,
                      const OnceOptions& options) const;
  Status store(std::string_view key, std::string_view parameters, std::string_view result) const;

  sqlite3* db_;
};

}  // namespace leasehold::sqlite
