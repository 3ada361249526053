#pragma once

#include "leasehold/registry.h"

namespace leasehold::postgres {

// For Registry::add.
std::vector<Adapter> adapters();

}  // namespace leasehold::postgres
