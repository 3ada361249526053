#include "etcd_under_test.h"
#include "testing/lock_patterns_conformance.h"
#include "testing/mode_conformance.h"
#include "testing/partitions_conformance.h"

namespace leasehold::testing {

LEASEHOLD_SERVER_CONFORMANCE(Etcd, "one", EtcdUnderTest);

INSTANTIATE_TEST_SUITE_P(Etcd, ModeConformance,
                         ::testing::Values(StoreCase{
                             "one", [] { return std::make_unique<EtcdUnderTest>(); }}),
                         name_of_store_case);

INSTANTIATE_TEST_SUITE_P(Etcd, PartitionsConformance,
                         ::testing::Values(StoreCase{
                             "one", [] { return std::make_unique<EtcdUnderTest>(); }}),
                         name_of_store_case);

INSTANTIATE_TEST_SUITE_P(Etcd, LockPatternsConformance,
                         ::testing::Values(StoreCase{
                             "one", [] { return std::make_unique<EtcdUnderTest>(); }}),
                         name_of_store_case);

}  // namespace leasehold::testing
