#include "etcd_under_test.h"
#include "testing/store_conformance.h"

namespace leasehold::testing {
namespace {

INSTANTIATE_TEST_SUITE_P(Etcd, StoreConformance,
                         ::testing::Values(StoreCase{
                             "one", [] { return std::make_unique<EtcdUnderTest>(); }}),
                         name_of_store_case);

}  // namespace
}  // namespace leasehold::testing
