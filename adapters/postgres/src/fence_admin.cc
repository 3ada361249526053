#include "fence_admin.h"

#include "admin_connection.h"
#include "fence_functions.h"
#include "fence_sweep.h"
#include "kit/try.h"
#include "sql/admin.h"

namespace leasehold::postgres {

Result<std::unique_ptr<FenceAdmin>> open_fence_admin(const Url& url) {
  auto connection = TRY(AdminConnection::open(url));
  return std::make_unique<sql::SqlFenceAdmin<AdminConnection>>(std::move(connection));
}

}  // namespace leasehold::postgres
