// Which of our statements are prepared on a user's connection.
#pragma once

#include <libpq-fe.h>

namespace leasehold::postgres {

// A statement that may be prepared under its name. The name stands for this text alone, so that it
// does not matter who prepared it: another text needs another number at its end.
struct NamedStatement {
  const char* name;
  const char* sql;
};

enum class Preparation { not_yet, done, impossible };

// Kept with the connection, and forgotten when it is reset.
Preparation preparation_of(const PGconn* connection, const NamedStatement& statement);
void remember(PGconn* connection, const NamedStatement& statement, Preparation state);

}  // namespace leasehold::postgres
