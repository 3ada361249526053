#pragma once

#include "leasehold/registry.h"

namespace leasehold::etcd {

// For Registry::add.
std::vector<Adapter> adapters();

}  // namespace leasehold::etcd
