#include "server_under_test.h"
#include "testing/lock_patterns_conformance.h"

namespace leasehold::testing {

LEASEHOLD_SERVER_CONFORMANCE(Redlock, "five_nodes", RedlockUnderTest);
INSTANTIATE_TEST_SUITE_P(Redlock, LockPatternsConformance,
                         ::testing::Values(StoreCase{
                             "five_nodes", [] { return std::make_unique<RedlockUnderTest>(); }}),
                         name_of_store_case);

}  // namespace leasehold::testing
