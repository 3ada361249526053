#include "server_under_test.h"

namespace leasehold::testing {

LEASEHOLD_SERVER_CONFORMANCE(Redis, "server", RedisUnderTest);

}  // namespace leasehold::testing
