// The outbox in a SQLite database of your own: see leasehold/outbox.h.
//
// From any language, in the transaction that does the work:
//
//   INSERT INTO leasehold_outbox(key, topic, payload, idempotency_key)
//     VALUES('order/1234', 'payment.received', '{"amount":30}', 'payment/7731');
//
// SQLite has one writer at a time, so that ids grow in the order of commits.
#pragma once

#include <cstdint>

#include "leasehold/outbox.h"

struct sqlite3;

namespace leasehold::sqlite {

// As thread safe as the connection. Each call may block as long as the connection's busy handler.

// Creates table leasehold_outbox in database "main", and the fence (install_fence) if it is
// missing. Doing it again changes nothing.
// Fails with `invalid` inside a transaction and for a lock store's file, `unavailable` if it cannot
// be written or has another version.
[[nodiscard]] Status install_outbox(sqlite3* db);

// Puts a message into the transaction that is open on the connection; its id. It is sent if that
// transaction commits.
// Fails with
// - `invalid`: no transaction is open, a field is wrong, or the idempotency key is in the outbox
//   already. The transaction is still open, and nothing was put.
// - `unavailable`: not installed, or another process is writing. Roll back and begin again.
[[nodiscard]] Result<std::int64_t> outbox_put(sqlite3* db, const OutboxEntry& entry);

}  // namespace leasehold::sqlite
