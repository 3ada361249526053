#include "leasehold/files/adapter.h"

#include "fence_admin.h"

namespace leasehold::files {

std::vector<Adapter> adapters() {
  return {{.scheme = "file", .open_store = {}, .open_fence = open_fence_admin}};
}

}  // namespace leasehold::files
