// Which locks of a server are held or waited for.
#pragma once

#include <set>

#include "leasehold/name.h"
#include "server.h"

namespace leasehold::redis {

[[nodiscard]] Result<std::set<LockName>> find_used_locks(Server& server, const std::string& prefix,
                                                         const CallContext& context);

}  // namespace leasehold::redis
