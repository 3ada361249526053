// What is found out about a server before it is trusted with locks.
#pragma once

#include <string>

#include "server.h"

namespace leasehold::redis {

// The value of a line "name:value" of INFO; empty if there is none.
std::string info_field(const std::string& info, const std::string& name);

struct Introduction {
  std::string version;   // empty: it did not say
  std::string mode;      // "standalone", "cluster", "sentinel"; empty: it did not say
  std::string eviction;  // a sentence's part if the server may throw locks away, else empty
  bool evicts_lasting_keys = false;  // also keys that never expire
};

// What the server says when it is greeted, and by INFO.
Introduction introduction_of(const resp::Greeting& greeting, const std::string& info);

// The reply of INFO; empty if this user may not ask. `unavailable` if there is no answer.
[[nodiscard]] Result<std::string> read_info(Server& server, const CallContext& context);
[[nodiscard]] Result<resp::Greeting> greeting_of(Server& server, const CallContext& context);

// Connects, and asks both. `unavailable` if there is no answer.
[[nodiscard]] Result<Introduction> learn(Server& server, const CallContext& context);
// Whether it can ever be used: `unsupported` for a cluster or a sentinel, `unavailable` if it is
// too old.
[[nodiscard]] Status check_usable(const Introduction& introduction, const std::string& address);
// Whether it takes writes: `unavailable` if not, `unsupported` if the store is in another format.
[[nodiscard]] Status check_writes(Server& server, const StoreId& new_store,
                                  const CallContext& context);

// Learns, and checks that the server can be used.
[[nodiscard]] Result<Introduction> examine(Server& server, const CallContext& context);
// The same, and checks that it takes writes.
[[nodiscard]] Result<Introduction> introduce(Server& server, const StoreId& new_store,
                                             const CallContext& context);

}  // namespace leasehold::redis
