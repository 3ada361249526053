// What is found out about a server before it is trusted with locks.
#pragma once

#include <string>

#include "server.h"

namespace leasehold::redis {

struct Introduction {
  std::string version;
  std::string eviction;  // a sentence's part if the server may throw locks away, else empty
  bool evicts_lasting_keys = false;  // also keys that never expire
};

// Connects, and checks that the server is one that can be used (`unsupported` if not).
[[nodiscard]] Result<Introduction> examine(Server& server, const CallContext& context);

// The same, and checks that it takes writes.
[[nodiscard]] Result<Introduction> introduce(Server& server, const StoreId& new_store,
                                             const CallContext& context);

}  // namespace leasehold::redis
