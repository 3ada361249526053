// What every SQL database must do with claims, row fences and guarded tables, on a real
// PostgreSQL.
#include "test_database.h"
#include "testing/sql_fence_suites.h"

namespace leasehold::testing {
namespace {

LEASEHOLD_SQL_FENCE_SUITES(Postgres, postgres::TestDatabase);

}  // namespace
}  // namespace leasehold::testing
