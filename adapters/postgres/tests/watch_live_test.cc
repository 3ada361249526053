#include "postgres_under_test.h"
#include "testing/watch_conformance.h"

namespace leasehold::testing {
namespace {

struct Rows : PostgresUnderTest {
  Rows() : PostgresUnderTest("mode=rows") {}
};
struct Advisory : PostgresUnderTest {
  Advisory() : PostgresUnderTest("mode=advisory") {}
};

LEASEHOLD_SERVER_WATCH_CONFORMANCE(PostgresRows, "rows", Rows);
LEASEHOLD_SERVER_WATCH_CONFORMANCE(PostgresAdvisory, "advisory", Advisory);

}  // namespace
}  // namespace leasehold::testing
