#include "leasehold/files/adapter.h"

#include "examination.h"
#include "fence_admin.h"
#include "kit/try.h"

namespace leasehold::files {

std::vector<Adapter> adapters() {
  return {{.scheme = "file",
           .open_store = {},
           .offers = Offers().with<FenceAdmin>(open_fence_admin),
           .examine = examine}};
}

Result<Fence> open_fence(std::string_view url, std::chrono::milliseconds wait) {
  const auto parsed = TRY(Url::parse(url));
  if (parsed.scheme != "file") {
    return fail(ErrorCode::invalid, "this needs a file URL, as in file:/srv/app/report.json");
  }
  auto named = TRY(FileUrl::of(parsed));
  named.options.wait = wait;
  return Fence::open(named.path, std::move(named.options));
}

}  // namespace leasehold::files
