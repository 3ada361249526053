// What the members of a group do on every store with modes. A store plugs in as for
// store_conformance.h:
//
//   INSTANTIATE_TEST_SUITE_P(Sqlite, PartitionsConformance, …, name_of_store_case);
#pragma once

#include "testing/store_conformance.h"

namespace leasehold::testing {

class PartitionsConformance : public StoreConformance {};

}  // namespace leasehold::testing
