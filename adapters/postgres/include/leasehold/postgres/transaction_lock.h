// A lock for as long as a transaction of the caller's own.
#pragma once

#include <string>

#include "leasehold/error.h"
#include "leasehold/name.h"
#include "leasehold/time.h"

struct pg_conn;  // libpq's connection, which libpq calls PGconn

namespace leasehold::postgres {

struct TransactionLockOptions {
  Millis wait{0};                                  // for a busy lock; zero: only try
  Millis idle_timeout = std::chrono::seconds(30);  // how long the transaction may do nothing
  std::string schema = "leasehold";                // as in the store's URL
};

// Takes the lock inside the transaction that is open on `connection`. It ends with that
// transaction: there is nothing to renew and nothing to release. It excludes everybody who takes
// the same name with mode=advisory, or the advisory lock that `leasehold show` prints.
//
// If the program does nothing in the transaction for longer than `idle_timeout`, the server ends
// the session and rolls back, so that a frozen program does not keep the lock. There is no token:
// all work is in the transaction, and a number that a rollback takes back must not leave it.
//
// Blocks up to `wait`, on the caller's connection. Not thread safe, as the connection.
// busy: somebody has it; timeout: and `wait` has passed. In both cases the transaction goes on.
// invalid: no transaction is open, it is not READ COMMITTED (it would read a state from before the
// lock), or the connection's client_encoding is not UTF8.
// unavailable: the server's own words; the transaction is over. Also if the schema is missing,
// which the first store that is opened in the database makes.
[[nodiscard]] Status lock_in_transaction(pg_conn* connection, const LockName& lock,
                                         const TransactionLockOptions& options = {});

}  // namespace leasehold::postgres
