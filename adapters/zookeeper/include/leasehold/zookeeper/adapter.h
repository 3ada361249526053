// ZooKeeper as a lock store.
#pragma once

#include "leasehold/registry.h"

namespace leasehold::zookeeper {

// For Registry::add. URLs: "zookeeper://user:password@host:port,host:port/folder".
std::vector<Adapter> adapters();

}  // namespace leasehold::zookeeper
