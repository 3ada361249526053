#include "proxied_server.h"

namespace leasehold::testing {
namespace {

INSTANTIATE_TEST_SUITE_P(Zookeeper, StoreWireConformance,
                         ::testing::Values(ServerCase{
                             "one", [] { return std::make_unique<ProxiedZookeeper>(); }}),
                         name_of_server_case);

}  // namespace
}  // namespace leasehold::testing
