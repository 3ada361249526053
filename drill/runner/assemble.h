// One history out of what the workers, the resource and the nemesis did.
#pragma once

#include <string>
#include <vector>

#include "leasehold/drill/history.h"
#include "ledger.h"
#include "order.h"

namespace leasehold::drill {

// `clients` is sorted; its references are those of `resource`.
[[nodiscard]] Result<History> assemble(const History& clients, const ResourceLog& resource,
                                       const std::vector<Blow>& blows);

}  // namespace leasehold::drill
