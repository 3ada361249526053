#include "fence_admin.h"

#include "fence_table.h"
#include "guard.h"
#include "kit/try.h"
#include "mark_sweep.h"
#include "sql/admin.h"
#include "user_file.h"

namespace leasehold::sqlite {

Result<std::unique_ptr<FenceAdmin>> open_fence_admin(const Url& url) {
  auto file = TRY(UserFile::open(url, "the fence"));
  return std::make_unique<sql::SqlFenceAdmin<UserFile>>(std::move(file));
}

}  // namespace leasehold::sqlite
