#include "leasehold/gate/adapter.h"

#include "examination.h"
#include "fence_admin.h"

namespace leasehold::gate {

std::vector<Adapter> adapters() {
  return {{.scheme = "gate",
           .open_store = {},
           .offers = Offers().with<FenceAdmin>(open_fence_admin),
           .examine = examine}};
}

}  // namespace leasehold::gate
