// The operator's view of the fences on one ZooKeeper ensemble.
#pragma once

#include <memory>

#include "leasehold/fence_admin.h"
#include "leasehold/url.h"

namespace leasehold::zookeeper {

// Connects; fails as Resources::open does. Calls take at most 5 s, to list the marks a minute.
[[nodiscard]] Result<std::unique_ptr<FenceAdmin>> open_fence_admin(const Url& url);

}  // namespace leasehold::zookeeper
