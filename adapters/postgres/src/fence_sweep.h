// Forgetting old marks: see FenceAdmin::sweep().
#pragma once

#include <vector>

#include "leasehold/fence_admin.h"
#include "session.h"

namespace leasehold::postgres {

[[nodiscard]] Result<std::int64_t> sweep_marks(Session session, const SweepOptions& options);
[[nodiscard]] Status admit_store(Session session, const StoreId& store);
[[nodiscard]] Result<std::vector<FenceFloor>> read_floors(Session session);

}  // namespace leasehold::postgres
