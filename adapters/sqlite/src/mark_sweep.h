// Sweeping old marks behind the floors of their stores.
#pragma once

#include <cstdint>
#include <vector>

#include "database.h"
#include "leasehold/fence_admin.h"

namespace leasehold::sqlite {

// As FenceAdmin::sweep. `unavailable` besides if what keeps the marks is not as it was made.
[[nodiscard]] Result<std::int64_t> sweep_marks(Connection connection, const SweepOptions& options);

[[nodiscard]] Status admit_store(Connection connection, const StoreId& store);

[[nodiscard]] Result<std::vector<FenceFloor>> read_floors(Connection connection);

}  // namespace leasehold::sqlite
