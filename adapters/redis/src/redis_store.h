// The lock store on one Redis server.
#pragma once

#include <memory>

#include "introduction.h"
#include "leasehold/registry.h"
#include "options.h"

namespace leasehold::redis {

// What such a store is worth.
StoreTraits redis_traits(const Options& options, const Introduction& introduction);

// For Adapter::open_store. Connects. `unavailable` or `unsupported`, with the address and the
// server's words.
[[nodiscard]] Result<std::unique_ptr<Store>> open_redis(const Url& url, const OpenOptions& opening);

}  // namespace leasehold::redis
