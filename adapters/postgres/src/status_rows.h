// How the database tells the state of locks: a row per lock, followed by a row per waiter.
#pragma once

#include <vector>

#include "connection.h"
#include "leasehold/store.h"

namespace leasehold::postgres {

// In the order of the rows. `unavailable` if somebody wrote what no Leasehold would.
[[nodiscard]] Result<std::vector<LockStatus>> read_status(const Rows& rows);

}  // namespace leasehold::postgres
