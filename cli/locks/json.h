// Locks for programs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "leasehold/store.h"

namespace leasehold::cli {

// "held", "kept" (released, but nobody gets it yet) or "free".
std::string state_of(const LockStatus& lock);
// "shared by 3", "2 of 4", or nothing if at most one can hold it, as far as is known.
std::optional<std::string> use_of(const LockStatus& lock);

// Whether `remaining` says how long it lasts.
bool tells_remaining(const LockStatus::Holder& holder);
// "12.3s", "at most 12.3s", "no end", or nothing if it is not known.
std::optional<std::string> remaining_of(const LockStatus::Holder& holder);

// Without a store: the default one is not there yet.
std::string locks_json(const std::optional<StoreTraits>& store,
                       const std::vector<LockStatus>& locks);
std::string lock_json(const std::optional<StoreTraits>& store, const LockStatus& lock);

// One line each, of what was seen now: a lock, or why it cannot be seen.
std::string seen_json(const LockStatus& lock);
std::string unseen_json(const std::string& why);

}  // namespace leasehold::cli
