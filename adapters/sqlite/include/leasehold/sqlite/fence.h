// The fence for a SQLite database of your own: see leasehold/sql/fence.h.
//
// The check is a trigger in the database, so that programs in every language pass the same one:
//
//   BEGIN;
//   INSERT INTO leasehold_enter(resource, token, lineage, request) VALUES(?, ?, ?, ?);
//   ... your reads and writes ...
//   COMMIT;
//
// To read beside others, insert into leasehold_enter_to_read instead. After a refusal roll back and
// insert the resource into leasehold_count_refusal: the stale-holder alarm. Marks are in table
// leasehold_fence, and what sweeping has left of them in leasehold_floor.
#pragma once

#include <string_view>
#include <vector>

#include "leasehold/error.h"
#include "leasehold/fence_admin.h"
#include "leasehold/name.h"
#include "leasehold/sql/fence.h"
#include "leasehold/sqlite/driver.h"

namespace leasehold::sqlite {

using leasehold::Entry;

// Creates the fence's tables, views and triggers in database "main" of the connection. Doing it
// again changes nothing, and then needs no right to write. Blocks as long as the connection's busy
// handler does.
// Fails with `invalid` inside a transaction and for a lock store's file, `unavailable` if the
// database cannot be written or has a fence of another version; the database is then unchanged.
[[nodiscard]] Status install_fence(sqlite3* db);

// Undoes install_fence() and every guard_table(), with all marks. Nothing to undo: does nothing.
// Also a fence of an earlier version, to begin afresh.
// Fails with `invalid` inside a transaction, `unavailable` if the database cannot be written or has
// a fence of a later version.
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

// enter() fails as `unavailable` if another process is writing, or this transaction has read before
// it entered and somebody has written since; after a failure the transaction is still open. After
// a rollback to a savepoint from before the entry do not go on. transaction() begins with BEGIN
// IMMEDIATE. Every call may block as long as the connection's busy handler.
//
// read() needs the write lock only to raise the mark, and for no longer; it raises it if no token
// as high as its own has entered, and once an hour besides, if nobody is in the way, so that a
// sweep knows that the mark is in use. Its work begins with a plain BEGIN. Any number of them are
// inside at once; without a write-ahead log a writer's commit waits for all of them, and so does a
// reader that must raise the mark. Work that writes, be it to a temporary table, is `invalid` at
// the end.
//
// enter_to_read() takes the write lock, up to the end of your transaction, only for what read()
// takes it for. So it compares first, in the snapshot of your transaction; SQLite lets nobody who
// has one wait for a writer. After a plain BEGIN, raising the mark beside a writer is therefore
// `unavailable` at once. Begin with BEGIN IMMEDIATE where that shall wait, or use read().
using Fence = sql::Fence<Driver>;

}  // namespace leasehold::sqlite
