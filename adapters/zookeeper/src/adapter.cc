#include "leasehold/zookeeper/adapter.h"

#include "examination.h"
#include "fence_admin.h"
#include "store.h"

namespace leasehold::zookeeper {

std::vector<Adapter> adapters() {
  return {{.scheme = "zookeeper",
           .open_store = open_store,
           .offers = Offers().with<FenceAdmin>(open_fence_admin),
           .examine = examine}};
}

}  // namespace leasehold::zookeeper
