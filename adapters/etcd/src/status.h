// What can be seen of the locks, and what their operator may do.
#pragma once

#include "session.h"

namespace leasehold::etcd {

void inspect(Session& session, LockName lock, CallContext context, Completion<LockStatus> done);
void list(Session& session, CallContext context, Completion<std::vector<LockStatus>> done);
void force_release(Session& session, LockName lock, RequestId seen, CallContext context,
                   Completion<ReleaseReply> done);

}  // namespace leasehold::etcd
