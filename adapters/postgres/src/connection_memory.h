// What we remember of a user's connection. It is kept with the connection, and forgotten when that
// is reset. Nothing relies on it: what is wrong costs a round trip.
#pragma once

#include <libpq-fe.h>

#include <string>

namespace leasehold::postgres {

// A statement that may be prepared under its name. The name stands for this text alone, so that it
// does not matter who prepared it: another text needs another number at its end.
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

bool entered_last(const PGconn* connection, const LastEntry& entry);
void remember(PGconn* connection, LastEntry entry) noexcept;

}  // namespace leasehold::postgres
