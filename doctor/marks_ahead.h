// Whether a store still knows the tokens that its fences have seen.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "leasehold/client.h"
#include "leasehold/fence_admin.h"

namespace leasehold::doctor {

// A mark that the store has not given yet, though it is of its own lineage: the store has gone back
// since (a restored backup, lost writes), and counts the same numbers a second time.
struct MarkAhead {
  ResourceName resource;
  Token mark;
  std::int64_t counted_to = 0;  // what the store has given of this lock

  std::string sentence() const;  // "Resource 'x' has seen token 7 of …"
};

// In the order of the marks. Those of other lineages, and of stores that cannot tell, are left out.
// Asks the store once for each lock; fails as inspect() does, or with `timeout` at the deadline.
[[nodiscard]] Result<std::vector<MarkAhead>> marks_ahead(Client& store,
                                                         const std::vector<FenceMark>& marks,
                                                         const CallContext& context);

// Whether there is any mark of the lineage to ask about.
bool has_entered(const std::vector<FenceMark>& marks, const StoreId& store);

}  // namespace leasehold::doctor
