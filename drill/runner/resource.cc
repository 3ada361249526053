#include "resource.h"

#include "file_resource.h"
#include "http_resource.h"
#include "kit/try.h"
#include "leasehold/url.h"
#include "resource_module.h"
#include "sqlite_resource.h"
#include "stores/src/module.h"

namespace leasehold::drill {

Result<std::unique_ptr<Resource>> open_resource(const ResourceChoice& choice) {
  const auto url = TRY(Url::parse(choice.url));
  if (url.scheme == "sqlite") return open_sqlite_resource(choice);
  if (url.scheme == "file") return open_file_resource(choice);
  if (url.scheme == "http") return open_http_resource(choice);
  const std::string technology = url.scheme == "postgresql" ? "postgres"
                                 : url.scheme == "rediss"   ? "redis"
                                                            : url.scheme;
  const auto module = TRY(load_module("drill_" + technology, kResourceModuleEntry));
  return static_cast<const ResourceModuleV1*>(module)->open(choice);
}

}  // namespace leasehold::drill
