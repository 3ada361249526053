#include "etcd_under_test.h"
#include "testing/watch_conformance.h"

namespace leasehold::testing {

LEASEHOLD_SERVER_WATCH_CONFORMANCE(Etcd, "one", EtcdUnderTest);

}  // namespace leasehold::testing
