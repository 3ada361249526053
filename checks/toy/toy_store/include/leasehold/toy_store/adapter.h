#pragma once

#include "leasehold/registry.h"

namespace leasehold::toy_store {

// For Registry::add. URLs: "toy://box".
std::vector<Adapter> adapters();

}  // namespace leasehold::toy_store
