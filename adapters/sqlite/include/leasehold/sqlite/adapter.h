// SQLite as a lock store and as a fenced resource.
#pragma once

#include "leasehold/registry.h"

namespace leasehold::sqlite {

// For Registry::add. URLs: "sqlite:/absolute/path.db" or "sqlite:relative/path.db".
std::vector<Adapter> adapters();

}  // namespace leasehold::sqlite
