#include "leasehold/etcd/adapter.h"

namespace leasehold::etcd {

std::vector<Adapter> adapters() {
  return {};
}

}  // namespace leasehold::etcd
