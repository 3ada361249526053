// Idempotency keys in a SQLite database of your own: see leasehold/sql/once.h.
//
// SQLite has one writer at a time, so that a run waits for whoever writes. A stored result is
// answered without that, in WAL mode; with synchronous FULL the log is synced first, since who
// stored it may have died before it was. The connection's busy timeout does not count while it
// waits; a busy handler of your own set by sqlite3_busy_handler does, in addition to options.wait.
#pragma once

#include "leasehold/sql/once.h"
#include "leasehold/sqlite/driver.h"

namespace leasehold::sqlite {

// Creates Once's table in database "main". Doing it again changes nothing. Fails with `invalid`
// inside a transaction and for a lock store's file, `unavailable` if it cannot be written or has
// another version.
[[nodiscard]] Status install_once(sqlite3* db);

using Once = sql::Once<Driver>;

}  // namespace leasehold::sqlite
