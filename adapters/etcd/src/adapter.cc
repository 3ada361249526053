#include "leasehold/etcd/adapter.h"

#include "store.h"

namespace leasehold::etcd {

std::vector<Adapter> adapters() {
  return {{.scheme = "etcd", .open_store = open_store, .open_fence = {}}};
}

}  // namespace leasehold::etcd
