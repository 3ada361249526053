// The fence for a SQLite database of your own: see leasehold/sql/fence.h.
//
// The check is a trigger in the database, so that programs in every language pass the same one:
//
//   BEGIN;
//   INSERT INTO leasehold_enter(resource, token, lineage, request) VALUES(?, ?, ?, ?);
//   ... your reads and writes ...
//   COMMIT;
//
// Marks are in table leasehold_fence.
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

// enter() fails as `unavailable` if another process is writing, or this transaction has read before
// it entered and somebody has written since; after a failure the transaction is still open. After
// a rollback to a savepoint from before the entry do not go on. transaction() begins with BEGIN
// IMMEDIATE. Every call may block as long as the connection's busy handler.
using Fence = sql::Fence<Driver>;

}  // namespace leasehold::sqlite
