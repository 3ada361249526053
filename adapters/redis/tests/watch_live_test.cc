#include "server_under_test.h"
#include "testing/watch_conformance.h"

namespace leasehold::testing {

LEASEHOLD_SERVER_WATCH_CONFORMANCE(Redis, "server", RedisUnderTest);
LEASEHOLD_SERVER_WATCH_CONFORMANCE(Redlock, "five_nodes", RedlockUnderTest);

}  // namespace leasehold::testing
