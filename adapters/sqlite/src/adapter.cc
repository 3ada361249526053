#include "leasehold/sqlite/adapter.h"

#include "examination.h"
#include "fence_admin.h"
#include "store.h"

namespace leasehold::sqlite {

std::vector<Adapter> adapters() {
  return {{.scheme = "sqlite",
           .open_store = open_store,
           .open_fence = open_fence_admin,
           .examine = examine}};
}

}  // namespace leasehold::sqlite
