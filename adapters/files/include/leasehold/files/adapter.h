// Files and folders as fenced resources. They keep no locks.
#pragma once

#include <vector>

#include "leasehold/registry.h"

namespace leasehold::files {

// For Registry::add. URLs: "file:/absolute/path" or "file:relative/path", naming the fenced file or
// folder; "?filesystem=local" vouches for a filesystem that is not known to be local.
std::vector<Adapter> adapters();

}  // namespace leasehold::files
