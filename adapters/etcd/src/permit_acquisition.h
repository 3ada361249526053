// One call of Store::acquire that asks for a permit.
#pragma once

#include "session.h"

namespace leasehold::etcd {

void acquire_permit(Session& session, AcquireCall call, CallContext context,
                    Completion<AcquireReply> done);

}  // namespace leasehold::etcd
