#include "leasehold/redis/adapter.h"

#include "fence_admin.h"
#include "redis_store.h"
#include "redlock_store.h"
#include "stream_target.h"

namespace leasehold::redis {

std::vector<Adapter> adapters() {
  return {{.scheme = "redis",
           .open_store = open_redis,
           .open_fence = open_fence_admin,
           .open_target = open_stream},
          {.scheme = "rediss",
           .open_store = open_redis,
           .open_fence = open_fence_admin,
           .open_target = open_stream},
          {.scheme = "redlock", .open_store = open_redlock, .open_fence = {}}};
}

}  // namespace leasehold::redis
