// What can be seen of the locks, and what their operator may do.
#pragma once

#include "session.h"

namespace leasehold::etcd {

void inspect(Session& session, LockName lock, CallContext context, Completion<LockStatus> done);
void list(Session& session, CallContext context, Completion<std::vector<LockStatus>> done);
// What is known of a request's key by looking at it; nothing if it has none.
void find_request(Session& session, const LockName& lock, const RequestId& request,
                  const CallContext& context, Completion<std::optional<Claim>> done);
void set_permits(Session& session, LockName lock, std::optional<std::int64_t> permits,
                 CallContext context, Completion<std::monostate> done);
void force_release(Session& session, LockName lock, RequestId seen, CallContext context,
                   Completion<ReleaseReply> done);

}  // namespace leasehold::etcd
