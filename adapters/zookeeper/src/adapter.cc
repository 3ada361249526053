#include "leasehold/zookeeper/adapter.h"

#include "store.h"

namespace leasehold::zookeeper {

std::vector<Adapter> adapters() {
  return {{.scheme = "zookeeper", .open_store = open_store, .open_fence = {}}};
}

}  // namespace leasehold::zookeeper
