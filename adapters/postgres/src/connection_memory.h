// What we remember of a user's connection. It is kept with the connection, and forgotten when that
// is reset. Where there is no room to remember, it costs a round trip.
#pragma once

#include <libpq-fe.h>

#include <optional>
#include <string>

#include "leasehold/postgres/transaction.h"

namespace leasehold::postgres {

// A statement that may be prepared under its name, in a session that nobody else has.
struct NamedStatement {
  const char* name;
  const char* sql;
};

enum class Preparation { not_yet, done, impossible };

Preparation preparation_of(const PGconn* connection, const NamedStatement& statement);
void remember(PGconn* connection, const NamedStatement& statement, Preparation state) noexcept;

// Which holder was the last to enter, and where.
struct LastEntry {
  std::string resource;
  std::string request;
  bool operator==(const LastEntry&) const = default;
};

// Whether the session is this connection's own. Behind a pooler it may be another one at each
// transaction, where others may have prepared a statement of the same name.
std::optional<bool> has_own_session(const PGconn* connection);
void remember_own_session(PGconn* connection, bool own) noexcept;

// It is open; from now on statements that begin or end a transaction are noticed.
void watch_transaction(PGconn* connection, TransactionId transaction) noexcept;
// Whether there was one since, or there may have been: also ROLLBACK TO a savepoint, which libpq
// tells as it tells ROLLBACK.
bool may_have_ended(const PGconn* connection, TransactionId transaction);

// For a connection of our own: a SELECT that sets what holds to the end of the transaction, and
// with which each one begins; none for a user's. It is not set for the session, which behind a
// pooler is somebody else's afterwards. False if there is no room for it.
const char* settings_of(const PGconn* connection);
[[nodiscard]] bool begin_each_with(PGconn* connection, const char* settings) noexcept;

bool entered_last(const PGconn* connection, const LastEntry& entry);
void remember(PGconn* connection, LastEntry entry) noexcept;

}  // namespace leasehold::postgres
