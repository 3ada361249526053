// Leasehold's own schema in the user's database: tables, and one function per operation.
#pragma once

#include <string>

#include "connection.h"
#include "leasehold/random.h"

namespace leasehold::postgres {

// The only one that this program works with.
inline constexpr std::int64_t kSchemaVersion = 2;

// Makes the schema unless it is there; clients that race agree. `unavailable` if it is not there
// and the role may not make it; `unsupported` if another version is there.
[[nodiscard]] Status ensure_schema(Connection& connection, const std::string& schema,
                                   Random& random, detail::CallWait& wait);

// Puts the schema in for every "@S" of the SQL, quoted, and its bare name for every "@N".
std::string in_schema(std::string_view sql, const std::string& schema);

}  // namespace leasehold::postgres
