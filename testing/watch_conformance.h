// What every store must show to those who watch it, and to a candidate whose store was away. A
// store plugs in as for store_conformance.h and store_wire_conformance.h:
//
//   INSTANTIATE_TEST_SUITE_P(Sqlite, WatchConformance, …, name_of_store_case);
//   LEASEHOLD_SERVER_WATCH_CONFORMANCE(Redis, "server", RedisUnderTest);
#pragma once

#include "testing/election_conformance.h"
#include "testing/store_conformance.h"
#include "testing/store_wire_conformance.h"

namespace leasehold::testing {

class WatchConformance : public StoreConformance {
 protected:
  // Where the store tells changes by itself nothing else is to tell them.
  WatchOptions only_told();
};

class WatchWireConformance : public ::testing::TestWithParam<ServerCase> {
 protected:
  WatchWireConformance() : server(GetParam().make()) {}
  ~WatchWireConformance() override {
    refuse(false);
    hold(false);
  }
  void refuse(bool on) {
    for (rig::TcpProxy* proxy : server->proxies()) proxy->refuse(on);
  }
  void hold(bool on) {
    for (rig::TcpProxy* proxy : server->proxies()) proxy->hold(on);
  }

  std::unique_ptr<ServerUnderTest> server;
};

// With election_conformance.h.
#define LEASEHOLD_SERVER_WATCH_CONFORMANCE(Store, name, UnderTest)                       \
  INSTANTIATE_TEST_SUITE_P(                                                              \
      Store, ElectionConformance,                                                        \
      ::testing::Values(StoreCase{name, [] { return std::make_unique<UnderTest>(); }}),  \
      name_of_store_case);                                                               \
  INSTANTIATE_TEST_SUITE_P(                                                              \
      Store, WatchConformance,                                                           \
      ::testing::Values(StoreCase{name, [] { return std::make_unique<UnderTest>(); }}),  \
      name_of_store_case);                                                               \
  INSTANTIATE_TEST_SUITE_P(                                                              \
      Store, WatchWireConformance,                                                       \
      ::testing::Values(ServerCase{name, [] { return std::make_unique<UnderTest>(); }}), \
      name_of_server_case)

}  // namespace leasehold::testing
