#include "server_under_test.h"

namespace leasehold::testing {
namespace {

INSTANTIATE_TEST_SUITE_P(Redlock, StoreConformance,
                         ::testing::Values(StoreCase{
                             "five_nodes", [] { return std::make_unique<RedlockUnderTest>(); }}),
                         name_of_store_case);

INSTANTIATE_TEST_SUITE_P(Redlock, StoreWireConformance,
                         ::testing::Values(ServerCase{
                             "five_nodes", [] { return std::make_unique<RedlockUnderTest>(); }}),
                         name_of_server_case);

}  // namespace
}  // namespace leasehold::testing
