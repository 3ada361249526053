// All adapters that this build of Leasehold contains.
#pragma once

#include "leasehold/registry.h"

namespace leasehold {

// Adds every adapter of this build. Doing it again changes nothing.
void register_stores(Registry& registry = Registry::standard());

}  // namespace leasehold
