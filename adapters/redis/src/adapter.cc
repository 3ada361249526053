#include "leasehold/redis/adapter.h"

#include "redis_store.h"
#include "redlock_store.h"

namespace leasehold::redis {

std::vector<Adapter> adapters() {
  return {{.scheme = "redis", .open_store = open_redis, .open_fence = {}},
          {.scheme = "rediss", .open_store = open_redis, .open_fence = {}},
          {.scheme = "redlock", .open_store = open_redlock, .open_fence = {}}};
}

}  // namespace leasehold::redis
