#include "server_under_test.h"

namespace leasehold::testing {

LEASEHOLD_SERVER_CONFORMANCE(Redlock, "five_nodes", RedlockUnderTest);

}  // namespace leasehold::testing
