// Which locks of a server may be held or waited for.
#pragma once

#include <set>

#include "leasehold/name.h"
#include "server.h"

namespace leasehold::redis {

// Those that have a queue, permits that were set, or a key: with a prefix anybody's, without one
// only what a client of ours took, as the locks of other programs cannot be told from their data.
[[nodiscard]] Result<std::set<LockName>> find_used_locks(Server& server, const std::string& prefix,
                                                         const CallContext& context);

}  // namespace leasehold::redis
