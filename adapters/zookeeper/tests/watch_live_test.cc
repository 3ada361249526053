#include "proxied_server.h"
#include "testing/watch_conformance.h"

namespace leasehold::testing {

LEASEHOLD_SERVER_WATCH_CONFORMANCE(Zookeeper, "one", ProxiedZookeeper);

}  // namespace leasehold::testing
