// Leasehold's own schema in the user's database: tables, and one function per operation.
#pragma once

#include <string>

#include "connection.h"
#include "leasehold/random.h"

namespace leasehold::postgres {

// The only one that this program works with.
inline constexpr std::int64_t kSchemaVersion = 11;

struct SchemaPlace {
  std::string name;
  std::string owner;  // whom the user trusts; may be empty
};

// Makes the schema unless it is there; clients that race agree. `unavailable` if the role may not
// do that, or the schema belongs to somebody whom this role had better not trust; `unsupported` if
// another version is there.
[[nodiscard]] Status ensure_schema(Connection& connection, const SchemaPlace& place, Random& random,
                                   waiting::CallWait& wait);

// An expression: somebody who owns the schema, or something in it, and is not to be trusted by this
// role; NULL if there is none.
std::string stranger_in(const SchemaPlace& place);
// What is wrong then.
Error belongs_to_stranger(const SchemaPlace& place, std::string_view stranger);

std::string replaced(std::string text, std::string_view from, std::string_view to);

// Puts the schema in for every "@S" of the SQL, quoted, and its bare name for every "@N".
std::string in_schema(std::string_view sql, const std::string& schema);

}  // namespace leasehold::postgres
