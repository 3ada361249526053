// Locks for people: a table.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "leasehold/store.h"

namespace leasehold::cli {

enum class Columns {
  all,
  of_holders,  // without what changes while the same ones hold the lock: REMAINING and WAITERS
};

// Without a store: the default one is not there yet, and there are no locks.
std::string lock_table(const std::optional<StoreTraits>& store,
                       const std::vector<LockStatus>& locks, Columns columns);

}  // namespace leasehold::cli
