#include "once_admin.h"

#include "admin_connection.h"
#include "kit/try.h"
#include "leasehold/postgres/once.h"
#include "once_functions.h"
#include "sql/admin.h"

namespace leasehold::postgres {

Result<std::unique_ptr<OnceAdmin>> open_once_admin(const Url& url) {
  auto connection = TRY(AdminConnection::open(url));
  return std::make_unique<sql::SqlOnceAdmin<AdminConnection, Once>>(std::move(connection));
}

}  // namespace leasehold::postgres
