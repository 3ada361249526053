// Idempotency keys: a way not to need a lock. The key, its parameters and its result are stored in
// the transaction that does the work, so that a repeat finds the result and does nothing.
//
// Programs in every language use the same functions:
//
//   BEGIN;
//   SELECT leasehold_once.claim('charge/1234', 'amount=30');   -- not NULL: done before; roll back
//   ... your reads and writes ...
//   SELECT leasehold_once.store('charge/1234', 'receipt 77');  -- without it the commit is refused
//   COMMIT;
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
#include "leasehold/postgres/transaction.h"
#include "leasehold/sql/once_work.h"

struct pg_conn;  // libpq's connection, which libpq calls PGconn

namespace leasehold::postgres {

// Connections are the caller's own, as for a Fence.

// Creates the schema leasehold_once. Doing it again changes nothing, and then needs no right to
// create. The role that does it owns it; others need `GRANT USAGE ON SCHEMA leasehold_once`.
// Fails with `invalid` inside a transaction, `unavailable` if the schema cannot be made or has
// another version or the server is older than 14, `unsupported` if the database is not UTF8; the
// database is then unchanged.
[[nodiscard]] Status install_once(pg_conn* connection);

// Undoes install_once(), with all results. Nothing to undo: does nothing.
[[nodiscard]] Status remove_once(pg_conn* connection);

// A small value that may be copied; neither owns nor caches anything of the connection. As thread
// safe as the connection: not to be used by two threads at once.
class Once {
 public:
  // Fails with `invalid` for a connection that cannot be used, `unavailable` if Once is not
  // installed there or has another version.
  [[nodiscard]] static Result<Once> open(pg_conn* connection);

  // Runs work(OpenTransaction&), which returns Result<std::string>, unless it has succeeded under
  // this key before; stores its result and commits both together. Results may hold any bytes, as
  // may parameters. Of several who come with the same key at once, one works; the others wait for
  // it and get its result, or work themselves if it fails. Different keys do not meet.
  //
  // Blocks up to options.wait for who is at work under the same key (a stop is heard within 100
  // ms), then for as long as the work takes. The session's lock_timeout does not count there, and
  // is as before when the work runs.
  //
  // Fails with
  // - `invalid`: the key is wrong (1 to 512 bytes of UTF-8 without control characters) or was used
  //   with other parameters; parameters or result are too long; a transaction is open already; the
  //   work ended the transaction, ignored a failed statement or broke a deferred constraint.
  // - `busy` (wait 0) or `timeout`: somebody else is at work under this key. `cancelled`: stop was
  //   requested.
  // - `unavailable`: the server said no, or the commit was not done. Safe to repeat.
  // - `outcome_unknown`: the connection was lost during the commit; repeating with the same key, on
  //   another connection, finds out.
  // - the work's own error. An error or an exception rolls back and stores nothing, so that the
  //   next call runs the work again.
  template <sql::OnceWork<OpenTransaction> Work>
  [[nodiscard]] Result<OnceResult> run(std::string_view key, std::string_view parameters,
                                       Work&& work, const OnceOptions& options = {}) const {
    return sql::run_once<OpenTransaction, OwnedTransaction>(
        begin(key, parameters, options), work,
        [&](const std::string& result) { return store(key, result); });
  }

  // Deletes results stored more than `age` ago by the database's clock, and tells how many. A key
  // that is forgotten would run again: choose an age beyond the last possible repeat.
  // The role needs SELECT and DELETE on leasehold_once.result. Fails with `invalid` inside a
  // transaction, `unavailable` if it cannot be written.
  [[nodiscard]] Result<std::int64_t> forget_older_than(std::chrono::seconds age) const;

 private:
  using Begun = sql::OnceBegun<OwnedTransaction>;

  explicit Once(pg_conn* connection) : connection_(connection) {}
  Result<Begun> begin(std::string_view key, std::string_view parameters,
                      const OnceOptions& options) const;
  Status store(std::string_view key, std::string_view result) const;

  pg_conn* connection_;
};

}  // namespace leasehold::postgres
