// Files and folders as fenced resources. They keep no locks.
#pragma once

#include <chrono>
#include <string_view>
#include <vector>

#include "leasehold/files/fence.h"
#include "leasehold/registry.h"

namespace leasehold::files {

// For Registry::add. URLs: "file:/absolute/path" or "file:relative/path", naming the fenced file or
// folder; "?filesystem=local" vouches for a filesystem that is not known to be local.
std::vector<Adapter> adapters();

// Fence::open by such a URL. Fails besides with `invalid` for another URL.
[[nodiscard]] Result<Fence> open_fence(std::string_view url, std::chrono::milliseconds wait);

}  // namespace leasehold::files
