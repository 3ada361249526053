// Looking for keys.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "server.h"

namespace leasehold::redis {

// All keys that begin so. Looks through the whole keyspace in small steps, as KEYS must not be used
// on a busy server.
[[nodiscard]] Result<std::set<std::string>> find_keys(Server& server, std::string_view begins,
                                                      const CallContext& context);

}  // namespace leasehold::redis
