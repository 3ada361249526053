#include "server_under_test.h"
#include "testing/lock_patterns_conformance.h"
#include "testing/mode_conformance.h"
#include "testing/partitions_conformance.h"

namespace leasehold::testing {

LEASEHOLD_SERVER_CONFORMANCE(Redis, "server", RedisUnderTest);
INSTANTIATE_TEST_SUITE_P(Redis, ModeConformance,
                         ::testing::Values(StoreCase{
                             "server", [] { return std::make_unique<RedisUnderTest>(); }}),
                         name_of_store_case);

INSTANTIATE_TEST_SUITE_P(Redis, PartitionsConformance,
                         ::testing::Values(StoreCase{
                             "server", [] { return std::make_unique<RedisUnderTest>(); }}),
                         name_of_store_case);
INSTANTIATE_TEST_SUITE_P(Redis, LockPatternsConformance,
                         ::testing::Values(StoreCase{
                             "server", [] { return std::make_unique<RedisUnderTest>(); }}),
                         name_of_store_case);

}  // namespace leasehold::testing
