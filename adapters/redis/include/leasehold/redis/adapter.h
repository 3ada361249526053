#pragma once

#include "leasehold/registry.h"

namespace leasehold::redis {

// For Registry::add.
std::vector<Adapter> adapters();

}  // namespace leasehold::redis
