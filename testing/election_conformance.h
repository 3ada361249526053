// What an election must do on every store. A store plugs in as for watch_conformance.h.
#pragma once

#include "testing/store_conformance.h"

namespace leasehold::testing {

class ElectionConformance : public ::testing::TestWithParam<StoreCase> {
 protected:
  ElectionConformance() : store(GetParam().make()) {}

  Client client() { return Client(store->open()); }

  std::unique_ptr<StoreUnderTest> store;
};

}  // namespace leasehold::testing
