#include "leasehold/redis/adapter.h"

#include "examination.h"
#include "fence_admin.h"
#include "redis_store.h"
#include "redlock_store.h"
#include "serial_work.h"
#include "stream_target.h"

namespace leasehold::redis {

std::vector<Adapter> adapters() {
  std::vector<Adapter> all;
  for (const char* scheme : {"redis", "rediss"}) {
    all.push_back({.scheme = scheme,
                   .open_store = open_redis,
                   .offers = Offers()
                                 .with<FenceAdmin>(open_fence_admin)
                                 .with<OutboxTarget>(open_stream)
                                 .with<SerialWork>(open_serial_work),
                   .examine = examine_redis});
  }
  all.push_back({.scheme = "redlock", .open_store = open_redlock, .examine = examine_redlock});
  return all;
}

}  // namespace leasehold::redis
