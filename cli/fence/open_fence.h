// What the commands on fences begin with.
#pragma once

#include <memory>
#include <string>

#include "leasehold/fence_admin.h"
#include "leasehold/registry.h"
#include "leasehold/stores.h"

namespace leasehold::cli {

inline Result<std::unique_ptr<FenceAdmin>> open_fence(const std::string& url) {
  register_stores();
  return Registry::standard().open<FenceAdmin>(url);
}

}  // namespace leasehold::cli
