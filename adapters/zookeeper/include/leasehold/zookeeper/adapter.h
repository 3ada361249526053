#pragma once

#include "leasehold/registry.h"

namespace leasehold::zookeeper {

// For Registry::add.
std::vector<Adapter> adapters();

}  // namespace leasehold::zookeeper
