// Whether a store still knows the tokens that its fences have seen.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "leasehold/client.h"
#include "leasehold/fence_admin.h"

namespace leasehold::doctor {

// What a fence remembers of those that entered.
struct FenceMemory {
  std::vector<FenceMark> marks;
  std::vector<FenceFloor> floors;

  // Whether there is anything of this store to ask about.
  bool knows(const StoreId& store) const;
  bool is_empty() const;
};

// A mark, or a floor, that the store has not given yet, though it is of its own lineage: the store
// has gone back since (a restored backup, lost writes), and counts the same numbers a second time.
struct MarkAhead {
  std::optional<ResourceName> resource;  // nothing: a floor's
  std::int64_t number = 0;
  std::string of;               // "lineage …", or of a floor "store …"
  std::int64_t counted_to = 0;  // what the store has given of this lock

  std::string sentence() const;  // "Resource 'x' has seen token 7 of …"
};

// In the order of the marks, then of the floors. Those of other lineages, and of stores that cannot
// tell, are left out. Asks the store once for each lock; fails as inspect() does, or with `timeout`
// at the deadline.
[[nodiscard]] Result<std::vector<MarkAhead>> marks_ahead(Client& store, const FenceMemory& memory,
                                                         const CallContext& context);

}  // namespace leasehold::doctor
