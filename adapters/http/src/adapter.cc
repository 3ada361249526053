#include "leasehold/http/adapter.h"

#include "fence_admin.h"

namespace leasehold::http {

std::vector<Adapter> adapters() {
  return {{.scheme = "gate", .open_store = {}, .open_fence = open_fence_admin}};
}

}  // namespace leasehold::http
