// One call of Store::renew.
#pragma once

#include "session.h"

namespace leasehold::etcd {

void renew(Session& session, std::vector<RenewCall> calls, CallContext context,
           Completion<std::vector<RenewReply>> done);

}  // namespace leasehold::etcd
