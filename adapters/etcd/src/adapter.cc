#include "leasehold/etcd/adapter.h"

#include "examination.h"
#include "fence_admin.h"
#include "store.h"

namespace leasehold::etcd {

std::vector<Adapter> adapters() {
  return {{.scheme = "etcd",
           .open_store = open_store,
           .offers = Offers().with<FenceAdmin>(open_fence_admin),
           .examine = examine}};
}

}  // namespace leasehold::etcd
