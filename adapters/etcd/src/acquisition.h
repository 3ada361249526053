// One call of Store::acquire.
#pragma once

#include "session.h"

namespace leasehold::etcd {

void acquire(Session& session, AcquireCall call, CallContext context,
             Completion<AcquireReply> done);

// A waiter that has not asked again for so long is taken for given up.
inline constexpr Millis kGivenUpAfter{15'000};
// How old the waiters' lease (of two seconds) may become before it is refreshed.
inline constexpr Millis kWaitersRefresh{500};

}  // namespace leasehold::etcd
