#include "slots.h"

#include <algorithm>

namespace leasehold::etcd {

void Slots::add(Slot slot, const wire::KeyValue& kv) {
  taken_[slot] = {std::string(slot_owner(kv.value()).value_or("")), kv.create_revision(),
                  kv.mod_revision()};
}

std::optional<Slot> Slots::of(std::string_view leaf, std::int64_t leaf_created) const {
  for (const auto& [slot, taken] : taken_) {
    if (taken.belongs_to(leaf, leaf_created)) return slot;
  }
  return std::nullopt;
}

const TakenSlot* Slots::find(Slot slot) const {
  const auto found = taken_.find(slot);
  return found == taken_.end() ? nullptr : &found->second;
}

std::int64_t Slots::unreadable() const {
  return std::count_if(taken_.begin(), taken_.end(),
                       [](const auto& it) { return it.second.owner.empty(); });
}

}  // namespace leasehold::etcd
