#include "etcd_under_test.h"

namespace leasehold::testing {

LEASEHOLD_SERVER_CONFORMANCE(Etcd, "one", EtcdUnderTest);

}  // namespace leasehold::testing
