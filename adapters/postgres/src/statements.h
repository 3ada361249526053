// Statements as leasehold/sql knows them, on a connection to PostgreSQL.
#pragma once

#include <string>

#include "leasehold/sql/statement.h"
#include "session.h"

namespace leasehold::postgres {

sql::Rows all_of(const Rows& rows);

// `invalid` for a text with a zero byte.
[[nodiscard]] Result<sql::Rows> run_statement(const Session& session, const std::string& sql,
                                              const sql::Parameters& parameters,
                                              sql::Purpose purpose);

// For statements at tables of the user's, on a connection of theirs.
sql::Run run_for_user(PGconn* connection);

}  // namespace leasehold::postgres
