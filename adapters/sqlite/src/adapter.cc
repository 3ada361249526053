#include "leasehold/sqlite/adapter.h"

#include "fence_admin.h"
#include "store.h"

namespace leasehold::sqlite {

Adapter adapter() {
  return {.scheme = "sqlite",
          .example = "sqlite:/var/lib/app/locks.db",
          .open_store = open_store,
          .open_fence = open_fence_admin};
}

}  // namespace leasehold::sqlite
