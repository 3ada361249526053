// Whether a schema may be trusted: whoever owns it, or a function in it, decides what is done with
// the rights of the role that calls it.
#pragma once

#include <string>
#include <string_view>

#include "leasehold/error.h"
#include "schema.h"

namespace leasehold::postgres {

// The owner of schema "@N" if this role is a superuser and that one could not become it anyhow;
// else NULL. Of an ordinary role's schema the roles that use it were told by whoever runs the
// database.
inline constexpr const char* kStrangerToSuperuser = R"sql(
(SELECT pg_catalog.pg_get_userbyid(n.nspowner) FROM pg_catalog.pg_namespace n
 WHERE n.nspname OPERATOR(pg_catalog.=) '@N'
   AND pg_catalog.current_setting('is_superuser') OPERATOR(pg_catalog.=) 'on'
   AND NOT pg_catalog.pg_has_role(n.nspowner, current_user, 'MEMBER'))
)sql";

// Somebody who owns schema "@N" or something in it, and is neither this role, nor one that could
// become it; nor, for an ordinary role, one that it is a member of, nor the database's owner, nor
// the one called "@OWNER", whom it was told to trust. NULL if there is none. What is made there
// would be theirs.
inline constexpr const char* kStrangerBesides = R"sql(
(SELECT pg_catalog.pg_get_userbyid(o.owner)
 FROM pg_catalog.pg_namespace n CROSS JOIN LATERAL (
   SELECT n.nspowner UNION ALL
   SELECT p.proowner FROM pg_catalog.pg_proc p WHERE p.pronamespace OPERATOR(pg_catalog.=) n.oid
   UNION ALL
   SELECT c.relowner FROM pg_catalog.pg_class c WHERE c.relnamespace OPERATOR(pg_catalog.=) n.oid
 ) o(owner)
 WHERE n.nspname OPERATOR(pg_catalog.=) '@N'
   AND NOT pg_catalog.pg_has_role(o.owner, current_user, 'MEMBER')
   AND (pg_catalog.current_setting('is_superuser') OPERATOR(pg_catalog.=) 'on'
        OR NOT pg_catalog.pg_has_role(current_user, o.owner, 'MEMBER')
           AND pg_catalog.pg_get_userbyid(o.owner) OPERATOR(pg_catalog.<>) '@OWNER'
           AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_database d
                           WHERE d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database()
                             AND d.datdba OPERATOR(pg_catalog.=) o.owner))
 LIMIT 1)
)sql";

// The same for a role that was told nothing.
inline std::string stranger_in_schema() {
  return replaced(kStrangerBesides, "@OWNER", "");
}

// The names in what follows are those of pg_catalog, to the end of the transaction.
inline constexpr const char* kTrustedNames =
    "PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);";

inline Error belongs_to(const std::string& schema, std::string_view stranger) {
  return Error(ErrorCode::unavailable,
               "the schema " + schema + ", or something in it, belongs to the role '" +
                   std::string(stranger) +
                   "', who could do there whatever this role may do; use it as that role, or drop "
                   "it");
}

}  // namespace leasehold::postgres
