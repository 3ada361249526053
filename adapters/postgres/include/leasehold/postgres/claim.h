// A claim in a PostgreSQL database of your own: see leasehold/sql/claim.h. In SQL:
//
//   SELECT leasehold_fence.claim('invoice/1234', '<request>');      -- a transaction of its own
//   ... reads, and work that may take long ...
//   BEGIN;
//   SELECT leasehold_fence.confirm('invoice/1234', '<request>');    -- fails if taken over
//   ... writes ...
//   COMMIT;
#pragma once

#include "leasehold/postgres/driver.h"
#include "leasehold/sql/claim.h"

namespace leasehold::postgres {

using Claim = sql::Claim<Driver>;

}  // namespace leasehold::postgres
