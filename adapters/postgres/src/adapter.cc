#include "leasehold/postgres/adapter.h"

#include "examination.h"
#include "fence_admin.h"
#include "options.h"
#include "row_store.h"
#include "session_store.h"

namespace leasehold::postgres {
namespace {

Result<std::unique_ptr<Store>> open_store(const Url& url, IfMissing) {
  auto options = Options::of(url);
  if (!options) return fail(std::move(options.error()));
  if (options->mode == Mode::advisory) {
    return SessionStore::open(std::move(*options), system_random());
  }
  return RowStore::open(std::move(*options), system_random());
}

}  // namespace

std::vector<Adapter> adapters() {
  return {{.scheme = "postgres",
           .open_store = open_store,
           .open_fence = open_fence_admin,
           .examine = examine},
          {.scheme = "postgresql",
           .open_store = open_store,
           .open_fence = open_fence_admin,
           .examine = examine}};
}

}  // namespace leasehold::postgres
