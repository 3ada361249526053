// Idempotency keys in a PostgreSQL database of your own: see leasehold/sql/once.h. Programs in
// every language use the same functions:
//
//   BEGIN;
//   SELECT leasehold_once.claim('charge/1234', 'amount=30');   -- not NULL: done before; roll back
//   ... your reads and writes ...
//   SELECT leasehold_once.store('charge/1234', 'receipt 77');  -- without it the commit is refused
//   COMMIT;
//
// A run waits for who is at work under the same key; different keys do not meet. A stop is heard
// within 100 ms. The session's lock_timeout does not count while it waits. The role of
// forget_older_than() needs SELECT and DELETE on leasehold_once.result.
#pragma once

#include "leasehold/postgres/driver.h"
#include "leasehold/sql/once.h"

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

using Once = sql::Once<Driver>;

}  // namespace leasehold::postgres
