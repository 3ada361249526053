#include "leasehold/redis/adapter.h"

#include "examination.h"
#include "fence_admin.h"
#include "redis_store.h"
#include "redlock_store.h"
#include "stream_target.h"

namespace leasehold::redis {

std::vector<Adapter> adapters() {
  return {{.scheme = "redis",
           .open_store = open_redis,
           .open_fence = open_fence_admin,
           .open_target = open_stream,
           .examine = examine_redis},
          {.scheme = "rediss",
           .open_store = open_redis,
           .open_fence = open_fence_admin,
           .open_target = open_stream,
           .examine = examine_redis},
          {.scheme = "redlock",
           .open_store = open_redlock,
           .open_fence = {},
           .examine = examine_redlock}};
}

}  // namespace leasehold::redis
