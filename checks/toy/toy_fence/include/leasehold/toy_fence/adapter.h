#pragma once

#include "leasehold/registry.h"

namespace leasehold::toy_fence {

// For Registry::add. URLs: "toyfence:/garden".
std::vector<Adapter> adapters();

}  // namespace leasehold::toy_fence
