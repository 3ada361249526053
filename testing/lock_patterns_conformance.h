// What the patterns over a lock (run_while_held, several locks, reentrant, readers and writers,
// permits) do on every store. A store plugs in as for store_conformance.h:
//
//   INSTANTIATE_TEST_SUITE_P(Sqlite, LockPatternsConformance, …, name_of_store_case);
#pragma once

#include "testing/store_conformance.h"

namespace leasehold::testing {

class LockPatternsConformance : public StoreConformance {};

}  // namespace leasehold::testing
