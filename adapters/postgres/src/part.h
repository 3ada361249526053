// Parts of Leasehold that live in a database of the user's own, each in a schema with its version.
#pragma once

#include <string>

#include "session.h"

namespace leasehold::postgres {

// In the ddl of each part, and of the lock store. A function that changes what somebody is told of
// calls it: a crash must not take that back where the role or the database has synchronous_commit
// off.
inline constexpr const char* kPartFunctions = R"sql(
CREATE OR REPLACE FUNCTION @S.commit_durably() RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF current_setting('synchronous_commit') NOT IN ('on', 'remote_apply') THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
END $$;
)sql";

struct Part {
  const char* schema;
  int version;        // the only one this program works with; raise it whenever the ddl changes
  const char* ddl;    // makes what is in the schema, of it version(), which says 'SELECT @VERSION'
  const char* noun;   // "the fence"
  const char* how;    // to install it: "with install_fence()"
  const char* holds;  // what is lost with it: "its marks"
};

// Makes the part unless it is there; clients that race agree. All or nothing. `invalid` inside a
// transaction, `unsupported` for a database that is not UTF8, `unavailable` if the server is too
// old, or the part cannot be made or has another version.
[[nodiscard]] Status install_part(Session session, const Part& part);

// `unavailable` if the part is missing, or has another version: then with what to do about it.
[[nodiscard]] Status check_part(Session session, const Part& part);

// The sentence about a part that is missing.
std::string not_installed(const Part& part);

// Drops the schema, and what depends on it; nothing if it is not there.
[[nodiscard]] Status remove_part(Session session, const Part& part);

}  // namespace leasehold::postgres
