#include "resource.h"

#include "leasehold/url.h"
#include "sqlite_resource.h"

namespace leasehold::drill {

Result<std::unique_ptr<Resource>> open_resource(const ResourceChoice& choice) {
  const auto url = Url::parse(choice.url);
  if (!url) return fail(url.error());
  if (url->scheme == "sqlite") return open_sqlite_resource(choice);
  return fail(ErrorCode::unsupported, "the drill has no resource for '" + url->scheme + "'");
}

}  // namespace leasehold::drill
