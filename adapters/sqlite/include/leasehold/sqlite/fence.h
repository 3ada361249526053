// The fence for a SQLite database of your own: refuses the stale holder inside the transaction that
// writes your data.
//
// The check is a trigger in the database, so that programs in every language pass the same one:
//
//   BEGIN;
//   INSERT INTO leasehold_enter(resource, token, lineage, request) VALUES(?, ?, ?, ?);
//   ... your reads and writes ...
//   COMMIT;
//
// Rules: a lower token is refused; an equal token passes only with the same request id (and not
// with single entry); a token of another lineage is refused and never compared; the first token to
// enter decides the lineage. Marks are kept forever, in table leasehold_fence.
#pragma once

#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "leasehold/error.h"
#include "leasehold/fence_admin.h"
#include "leasehold/name.h"
#include "leasehold/sqlite/transaction.h"
#include "leasehold/token.h"

struct sqlite3;

namespace leasehold::sqlite {

enum class Entry {
  repeatable,  // the same holder may enter again, for example to retry
  single,      // a token that has entered may not enter again: for work that must not be repeated
};

// Creates the fence's table, views and triggers in database "main" of the connection. Doing it
// again changes nothing, and then needs no right to write. Blocks as long as the connection's busy
// handler does.
// Fails with `invalid` inside a transaction and for a lock store's file, `unavailable` if the
// database cannot be written or has a fence of another version; the database is then unchanged.
[[nodiscard]] Status install_fence(sqlite3* db);

// Undoes install_fence() and every guard_table(), with all marks. Nothing to undo: does nothing.
// Fails with `invalid` inside a transaction, `unavailable` as install_fence does.
[[nodiscard]] Status remove_fence(sqlite3* db);

// Refuses every INSERT, UPDATE and DELETE on `table` in a transaction that has not entered
// `resource` (or confirmed a claim on it), by whatever program: its statement fails with
// "leasehold: not_entered". Doing it again changes nothing.
//
// SQLite knows no state of a transaction, so that an entry to a resource that guards a table leaves
// a row in table leasehold_inside, which must be gone at the commit: a deferred foreign key refuses
// a commit with it. So such an entry needs `PRAGMA foreign_keys = ON` on the connection (else it is
// `invalid`), and a Fence::leave() just before the commit, which Fence::transaction does by itself.
//
// Fails with `invalid` inside a transaction, for a table that is not there or cannot have triggers,
// or that another resource guards already; `unavailable` if the fence is not installed or the
// database cannot be written.
[[nodiscard]] Status guard_table(sqlite3* db, std::string_view table, const ResourceName& resource);
// `invalid` if the table is not guarded.
[[nodiscard]] Status unguard_table(sqlite3* db, std::string_view table);

// All marks, by resource name. Fails with `unavailable` if the fence is not installed.
[[nodiscard]] Result<std::vector<FenceMark>> fence_marks(sqlite3* db);

// One resource behind the fence. A small value that may be copied; it neither owns nor caches
// anything of the connection, which must outlive its calls. As thread safe as the connection: not
// to be used by two threads at once. Every call may block as long as the connection's busy handler.
class Fence {
 public:
  // `db` is your own connection; the fence lives in its database "main". Opening reads, so do it
  // before you begin the transaction in which you enter.
  // Fails with `invalid` for a wrong name (1 to 512 bytes of UTF-8 without control characters),
  // `unavailable` if the fence is not installed there or has another version.
  [[nodiscard]] static Result<Fence> open(sqlite3* db, std::string_view resource);
  [[nodiscard]] static Result<Fence> open(sqlite3* db, ResourceName resource);

  const ResourceName& resource() const { return resource_; }

  // Enters the fence in the transaction that is open on the connection. Call it before reading:
  // what was read before entering may be stale. The mark moves when that transaction commits; do
  // not roll back to a savepoint from before the entry and go on.
  //
  // Fails with
  // - `fenced_out`: refused; error.refusal has both numbers. Roll back, then count_refusal().
  // - `invalid`: no transaction is open, the resource is used with claims, or it guards a table and
  //   the connection does not enforce foreign keys.
  // - `unavailable`: another process is writing, or this transaction has read before it entered
  //   and somebody has written since. Roll back and begin again.
  // After a failure the transaction is still open and nothing has been changed by this call. It
  // must be rolled back: a commit would let through whatever else it wrote.
  [[nodiscard]] Status enter(const Token& token, Entry entry = Entry::repeatable) const;

  // BEGIN IMMEDIATE, enter, work(OpenTransaction&), COMMIT. The work returns Status or Result<T>,
  // and so does this call. An error or an exception of the work rolls everything back, the mark
  // too, and is passed on.
  //
  // Fails besides with
  // - `fenced_out`: the work was not run. The refusal is counted, durably; if that fails,
  //   error.store_words says so.
  // - `invalid`: a transaction is open already, the resource is used with claims, or the work
  //   ended the transaction or broke a deferred constraint.
  // - `unavailable`: the write lock could not be taken, or the commit was not done. Safe to retry.
  // - `outcome_unknown`: the disk failed during the commit.
  template <detail::TransactionWork Work>
  [[nodiscard]] auto transaction(const Token& token, Work&& work,
                                 Entry entry = Entry::repeatable) const
      -> std::remove_cvref_t<std::invoke_result_t<Work&, OpenTransaction&>> {
    auto begun = begin(token, entry);
    if (!begun) return fail(std::move(begun.error()));
    return detail::run_and_commit(std::move(*begun), work);
  }

  // Ends the right to write to guarded tables in the transaction that is open on the connection,
  // for all resources: the last step before its commit, without which SQLite refuses that with
  // "FOREIGN KEY constraint failed". Does nothing if no table is guarded. transaction() does it by
  // itself.
  [[nodiscard]] Status leave() const;

  // Adds one to this resource's refusals, the stale-holder alarm. transaction() does it by itself;
  // after a refused enter() call it once your transaction is rolled back.
  // Fails with `invalid` inside a transaction, `unavailable` if it cannot be written.
  [[nodiscard]] Status count_refusal() const;

  // What is remembered of this resource; nothing if it was never entered.
  [[nodiscard]] Result<std::optional<FenceMark>> mark() const;

 private:
  Fence(sqlite3* db, ResourceName resource) : db_(db), resource_(std::move(resource)) {}
  Result<detail::OwnedTransaction> begin(const Token& token, Entry entry) const;

  sqlite3* db_;
  ResourceName resource_;
};

}  // namespace leasehold::sqlite
