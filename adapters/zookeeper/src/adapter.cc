#include "leasehold/zookeeper/adapter.h"

namespace leasehold::zookeeper {

std::vector<Adapter> adapters() {
  return {};
}

}  // namespace leasehold::zookeeper
