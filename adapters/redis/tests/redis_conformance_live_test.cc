#include "server_under_test.h"

namespace leasehold::testing {
namespace {

INSTANTIATE_TEST_SUITE_P(Redis, StoreConformance,
                         ::testing::Values(StoreCase{
                             "server", [] { return std::make_unique<RedisUnderTest>(); }}),
                         name_of_store_case);

INSTANTIATE_TEST_SUITE_P(Redis, StoreWireConformance,
                         ::testing::Values(ServerCase{
                             "server", [] { return std::make_unique<RedisUnderTest>(); }}),
                         name_of_server_case);

}  // namespace
}  // namespace leasehold::testing
