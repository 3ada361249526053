// Times for gRPC, on its own clock: a moved wall clock moves no deadline.
#pragma once

#include <grpc/support/time.h>

#include "leasehold/time.h"

namespace leasehold::etcd {

inline gpr_timespec grpc_time(BootClock::duration from_now) {
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_nanos(from_now.count(), GPR_TIMESPAN));
}

}  // namespace leasehold::etcd
