// A claim in a SQLite database of your own: see leasehold/sql/claim.h. In SQL:
//
//   INSERT INTO leasehold_claim(resource, request) VALUES(?, ?);      -- a transaction of its own
//   ... reads, and work that may take long ...
//   BEGIN;
//   INSERT INTO leasehold_confirm(resource, request) VALUES(?, ?);    -- fails if taken over
//   ... writes ...
//   COMMIT;
#pragma once

#include "leasehold/sql/claim.h"
#include "leasehold/sqlite/driver.h"

namespace leasehold::sqlite {

using Claim = sql::Claim<Driver>;

}  // namespace leasehold::sqlite
