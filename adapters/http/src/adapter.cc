#include "leasehold/http/adapter.h"

#include "examination.h"
#include "fence_admin.h"

namespace leasehold::http {

std::vector<Adapter> adapters() {
  return {{.scheme = "gate", .open_store = {}, .open_fence = open_fence_admin, .examine = examine}};
}

}  // namespace leasehold::http
