// The fence for a PostgreSQL database of your own: refuses the stale holder inside the transaction
// that writes your data.
//
// The check is a function in the database, so that programs in every language pass the same one:
//
//   BEGIN;
//   SELECT leasehold_fence.enter('invoice/1234', 33, '<lineage>', '<request>');
//   ... your reads and writes ...
//   COMMIT;
//
// Entering locks the resource's row in leasehold_fence.mark until the transaction ends:
// transactions of one resource come one after the other, those of different resources do not meet.
//
// Rules: a lower token is refused; an equal token passes only with the same request id (and not
// with single entry); a token of another lineage is refused and never compared; the first token to
// enter decides the lineage. Marks are kept forever. A refusal is SQLSTATE LH001.
#pragma once

#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "leasehold/error.h"
#include "leasehold/fence_admin.h"
#include "leasehold/name.h"
#include "leasehold/postgres/transaction.h"
#include "leasehold/token.h"

struct pg_conn;  // libpq's connection, which libpq calls PGconn

namespace leasehold::postgres {

enum class Entry {
  repeatable,  // the same holder may enter again, for example to retry
  single,      // a token that has entered may not enter again: for work that must not be repeated
};

// Connections are the caller's own, in blocking use: not in pipeline mode, with the client encoding
// UTF8. Every call blocks until the server answers, as long as the connection's own timeouts
// (lock_timeout, statement_timeout) let it. As thread safe as the connection: not to be used by two
// threads at once.

// Creates the schema leasehold_fence with its tables and functions. Doing it again changes nothing,
// and then needs no right to create. The role that does it owns the fence; others need
// `GRANT USAGE ON SCHEMA leasehold_fence`.
// Fails with `invalid` inside a transaction, `unavailable` if the schema cannot be made or has
// another version or the server is older than 14, `unsupported` if the database is not UTF8; the
// database is then unchanged.
[[nodiscard]] Status install_fence(pg_conn* connection);

// Undoes install_fence() and every guard_table(), with all marks. Nothing to undo: does nothing.
[[nodiscard]] Status remove_fence(pg_conn* connection);

// Refuses every INSERT, UPDATE, DELETE, MERGE, COPY and TRUNCATE on `table` ("orders",
// "sales.orders", "\"Orders\"": as in SQL) in a transaction that has not entered `resource`, or
// confirmed a claim on it, by whatever program: SQLSTATE LH002. Doing it again changes nothing.
// Waits for the transactions that write to the table now.
// Fails with `invalid` inside a transaction, for a table that is not there or is none, or that
// another resource guards already; `unavailable` if the fence is not installed or the role may not.
[[nodiscard]] Status guard_table(pg_conn* connection, std::string_view table,
                                 const ResourceName& resource);
// `invalid` if the table is not guarded.
[[nodiscard]] Status unguard_table(pg_conn* connection, std::string_view table);

// All marks, by resource name. Fails with `unavailable` if the fence is not installed.
[[nodiscard]] Result<std::vector<FenceMark>> fence_marks(pg_conn* connection);

// One resource behind the fence. A small value that may be copied; it neither owns nor caches
// anything of the connection, which must outlive its calls.
class Fence {
 public:
  // Fails with `invalid` for a wrong name (1 to 512 bytes of UTF-8 without control characters) or a
  // connection that cannot be used; `unavailable` if the fence is not installed there or has
  // another version.
  [[nodiscard]] static Result<Fence> open(pg_conn* connection, std::string_view resource);
  [[nodiscard]] static Result<Fence> open(pg_conn* connection, ResourceName resource);

  const ResourceName& resource() const { return resource_; }

  // Enters the fence in the transaction that is open on the connection. Make it the first statement
  // there: what was read before entering may be stale. The mark moves when that transaction
  // commits. After a rollback to a savepoint from before the entry it has not entered.
  //
  // Fails with
  // - `fenced_out`: refused; error.refusal has both numbers. Roll back, then count_refusal().
  // - `invalid`: no transaction is open, or the resource is used with claims.
  // - `unavailable`: the row could not be locked in time, a deadlock, or (REPEATABLE READ and
  //   SERIALIZABLE) somebody has entered since this transaction began. Begin again.
  // After a failure the server does nothing more in this transaction: roll back.
  [[nodiscard]] Status enter(const Token& token, Entry entry = Entry::repeatable) const;

  // BEGIN and enter in one round trip, work(OpenTransaction&), COMMIT. The work returns Status or
  // Result<T>, and so does this call. An error or an exception of the work rolls everything back,
  // the mark too, and is passed on. The isolation level is the session's default.
  //
  // Fails besides with
  // - `fenced_out`: the work was not run. The refusal is counted, durably; if that fails,
  //   error.store_words says so.
  // - `invalid`: a transaction is open already, the resource is used with claims, or the work
  //   ended the transaction, ignored a failed statement or broke a deferred constraint.
  // - `unavailable`: as enter(), or the commit was not done. Safe to retry.
  // - `outcome_unknown`: the connection was lost during the commit.
  template <TransactionWork Work>
  [[nodiscard]] auto transaction(const Token& token, Work&& work,
                                 Entry entry = Entry::repeatable) const
      -> std::remove_cvref_t<std::invoke_result_t<Work&, OpenTransaction&>> {
    auto begun = begin(token, entry);
    if (!begun) return fail(std::move(begun.error()));
    return run_and_commit(std::move(*begun), work);
  }

  // Adds one to this resource's refusals, the stale-holder alarm. transaction() does it by itself;
  // after a refused enter() call it once your transaction is rolled back.
  // Fails with `invalid` inside a transaction, `unavailable` if it cannot be written.
  [[nodiscard]] Status count_refusal() const;

  // What is remembered of this resource; nothing if it was never entered.
  [[nodiscard]] Result<std::optional<FenceMark>> mark() const;

 private:
  friend class FencedOnce;
  Fence(pg_conn* connection, ResourceName resource)
      : connection_(connection), resource_(std::move(resource)) {}
  Result<OwnedTransaction> begin(const Token& token, Entry entry) const;

  pg_conn* connection_;
  ResourceName resource_;
};

}  // namespace leasehold::postgres
