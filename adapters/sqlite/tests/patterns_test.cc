// The suites of the patterns without a lock, on a SQLite file.
#include "test_database.h"

namespace leasehold::testing {
namespace {

LEASEHOLD_SQL_PATTERNS(Sqlite, sqlite::TestDatabase);

}  // namespace
}  // namespace leasehold::testing
