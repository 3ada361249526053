// Who has which slot of one lock, by the keys of its slots.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "keys.h"
#include "wire.pb.h"

namespace leasehold::etcd {

struct TakenSlot {
  std::string owner;  // the leaf of its request; empty: that cannot be read
  std::int64_t created = 0;
  std::int64_t modified = 0;

  // A key that was made after the slot was taken is not its owner's, though it has the same name.
  bool belongs_to(std::string_view leaf, std::int64_t leaf_created) const {
    return owner == leaf && leaf_created <= created;
  }
};

class Slots {
 public:
  void add(Slot slot, const wire::KeyValue& kv);

  std::optional<Slot> of(std::string_view leaf, std::int64_t leaf_created) const;
  // Null: there is no key.
  const TakenSlot* find(Slot slot) const;
  std::int64_t created(Slot slot) const { return taken_.at(slot).created; }
  // Those whose owner cannot be read.
  std::int64_t unreadable() const;

 private:
  std::map<Slot, TakenSlot> taken_;
};

}  // namespace leasehold::etcd
