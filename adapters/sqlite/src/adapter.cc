#include "leasehold/sqlite/adapter.h"

#include "examination.h"
#include "fence_admin.h"
#include "once_admin.h"
#include "outbox.h"
#include "store.h"

namespace leasehold::sqlite {

std::vector<Adapter> adapters() {
  return {{.scheme = "sqlite",
           .open_store = open_store,
           .offers = Offers()
                         .with<FenceAdmin>(open_fence_admin)
                         .with<Outbox>(open_outbox)
                         .with<OnceAdmin>(open_once_admin),
           .examine = examine}};
}

}  // namespace leasehold::sqlite
