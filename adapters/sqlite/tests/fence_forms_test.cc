// What every SQL database must do with claims, row fences and guarded tables, on a SQLite file.
#include "test_database.h"
#include "testing/sql_fence_suites.h"

namespace leasehold::testing {
namespace {

LEASEHOLD_SQL_FENCE_SUITES(Sqlite, sqlite::TestDatabase);

}  // namespace
}  // namespace leasehold::testing
