// What every store with modes must do: readers beside each other, permits, notes. A store plugs in
// as for store_conformance.h:
//
//   INSTANTIATE_TEST_SUITE_P(Sqlite, ModeConformance, …, name_of_store_case);
#pragma once

#include "testing/store_conformance.h"

namespace leasehold::testing {

class ModeConformance : public StoreConformance {};

}  // namespace leasehold::testing
