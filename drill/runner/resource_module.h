// Resources with a heavy client library are modules, as the adapters of their stores are.
#pragma once

#include <chrono>

#include "leasehold/enter_options.h"
#include "leasehold/fence_admin.h"
#include "resource.h"

namespace leasehold::drill {

// How every entry is made.
inline EnterOptions soon() {
  return {.timeout = std::chrono::seconds(2)};
}

// For Resource::peek() where nobody reads without the fence: whoever entered last may do so again.
inline Result<std::uint64_t> enter_again(Resource& resource, const std::optional<FenceMark>& last) {
  if (!last || !last->mark) return 0;
  return resource.enter({last->mark, last->mark->request});
}

// What the entry of module "drill_<scheme>" tells.
struct ResourceModuleV1 {
  const char* version;
  Result<std::unique_ptr<Resource>> (*open)(const ResourceChoice& choice);
};
inline constexpr const char* kResourceModuleEntry = "leasehold_drill_resource_v1";

}  // namespace leasehold::drill

// Defines the entry of a module, once, outside of any namespace.
#define LEASEHOLD_DRILL_RESOURCE_MODULE(open)                                                   \
  extern "C" __attribute__((visibility("default"))) const void* leasehold_drill_resource_v1() { \
    static const leasehold::drill::ResourceModuleV1 module{LEASEHOLD_VERSION, open};            \
    return &module;                                                                             \
  }
