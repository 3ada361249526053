#include "leasehold/redis/adapter.h"

namespace leasehold::redis {

std::vector<Adapter> adapters() {
  return {};
}

}  // namespace leasehold::redis
