// The fence for a PostgreSQL database of your own: see leasehold/sql/fence.h.
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
// Readers share it: leasehold_fence.enter_to_read(), by itself and then again in the transaction.
// A refusal is SQLSTATE LH001.
#pragma once

#include <string_view>
#include <vector>

#include "leasehold/error.h"
#include "leasehold/fence_admin.h"
#include "leasehold/name.h"
#include "leasehold/postgres/driver.h"
#include "leasehold/sql/fence.h"

namespace leasehold::postgres {

using leasehold::Entry;

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

// enter() fails as `unavailable` if the row could not be locked in time, in a deadlock, or (in
// REPEATABLE READ and SERIALIZABLE) if somebody has entered since this transaction began; after a
// failure the server does nothing more in this transaction. A writer waits until those have ended
// who are inside to read. read() needs a server that can be written to, because it raises the mark.
using Fence = sql::Fence<Driver>;

}  // namespace leasehold::postgres
