// Answers for programs. The names and types of the fields are part of the program's interface.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "doctor/marks_ahead.h"
#include "leasehold/fence_admin.h"
#include "leasehold/outbox.h"
#include "leasehold/store.h"

namespace leasehold::cli {

// "held", "kept" (released, but nobody gets it yet) or "free".
std::string state_of(const LockStatus& lock);

// Without a store: the default one is not there yet.
std::string locks_json(const std::optional<StoreTraits>& store,
                       const std::vector<LockStatus>& locks);
std::string lock_json(const std::optional<StoreTraits>& store, const LockStatus& lock);
std::string fence_json(const std::vector<FenceMark>& marks, const std::vector<GuardedTable>& tables,
                       const std::vector<doctor::MarkAhead>& ahead);
std::string outbox_json(const OutboxStatus& status);

}  // namespace leasehold::cli
