// The suites of the patterns without a lock, on a real PostgreSQL.
#include "test_database.h"

namespace leasehold::testing {
namespace {

LEASEHOLD_SQL_PATTERNS(Postgres, postgres::TestDatabase);

}  // namespace
}  // namespace leasehold::testing
