// Both ways to lock, with a wire that fails.
#include "postgres_under_test.h"

namespace leasehold::testing {
namespace {

INSTANTIATE_TEST_SUITE_P(
    Postgres, StoreWireConformance,
    ::testing::Values(
        ServerCase{"rows", [] { return std::make_unique<PostgresUnderTest>("mode=rows"); }},
        ServerCase{"advisory",
                   [] { return std::make_unique<PostgresUnderTest>("mode=advisory"); }}),
    name_of_server_case);

}  // namespace
}  // namespace leasehold::testing
