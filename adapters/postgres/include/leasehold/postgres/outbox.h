// The outbox in a PostgreSQL database of your own: see leasehold/outbox.h.
//
// From any language, in the transaction that does the work:
//
//   SELECT leasehold_outbox.put('order/1234', 'payment.received', '{"amount":30}', 'payment/7731');
//
// Numbers of a sequence become visible in another order than they were taken, if transactions run
// side by side. So outbox_put locks the key until the transaction ends: the next one with this key
// waits, and only then takes its number. Transactions of different keys do not meet. Two that put
// the same two keys in opposite order deadlock, and the server ends one of them: put keys in a
// fixed order, and late in the transaction.
#pragma once

#include <cstdint>

#include "leasehold/outbox.h"

struct pg_conn;  // libpq's connection, which libpq calls PGconn

namespace leasehold::postgres {

// The connection is the caller's own, in blocking use. As thread safe as the connection.

// Creates table leasehold_outbox.message and its functions, and the fence (install_fence) if it is
// missing. Doing it again changes nothing. Roles that put need `GRANT USAGE ON SCHEMA leasehold`.
// Fails with `invalid` inside a transaction, `unavailable` if it cannot be made or has another
// version, and with what install_fence says of the server and the database.
[[nodiscard]] Status install_outbox(pg_conn* connection);

// Puts a message into the transaction that is open on the connection; its id. It is sent if that
// transaction commits. The commit is made durable even if synchronous_commit is off: nobody may be
// told of what a crash takes back.
// Blocks while another transaction has the key, as long as the connection's lock_timeout lets it.
// Fails with
// - `invalid`: no transaction is open, a field is wrong (a zero byte too), or the idempotency key
//   is in the outbox already.
// - `unavailable`: not installed, a deadlock, a timeout. Roll back and begin again.
[[nodiscard]] Result<std::int64_t> outbox_put(pg_conn* connection, const OutboxEntry& entry);

}  // namespace leasehold::postgres
