#include "once_admin.h"

#include "kit/try.h"
#include "leasehold/sqlite/once.h"
#include "once_table.h"
#include "sql/admin.h"
#include "user_file.h"

namespace leasehold::sqlite {

Result<std::unique_ptr<OnceAdmin>> open_once_admin(const Url& url) {
  auto file = TRY(UserFile::open(url, "the idempotency keys"));
  return std::make_unique<sql::SqlOnceAdmin<UserFile, Once>>(std::move(file));
}

}  // namespace leasehold::sqlite
