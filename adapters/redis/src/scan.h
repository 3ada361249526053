// Looking for keys.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "server.h"

namespace leasehold::redis {

// Calls `found` with the keys that begin so, about a thousand at a time; one may come twice. Looks
// through the whole keyspace in small steps, as KEYS must not be used on a busy server.
[[nodiscard]] Status scan_keys(Server& server, std::string_view begins, const CallContext& context,
                               const std::function<Status(std::vector<std::string>)>& found);

// All of them.
[[nodiscard]] Result<std::set<std::string>> find_keys(Server& server, std::string_view begins,
                                                      const CallContext& context);

}  // namespace leasehold::redis
