// Asks the upstream whether it is done with what it never answered.
#pragma once

#include "gate_core.h"

namespace leasehold::gate {

// Fails with `invalid` if the path is not like /quiet/{resource}.
[[nodiscard]] Status check_probe(const std::string& path);

// One round over all resources that wait to be cleared.
Async<void> probe_unanswered(GateCore& core);

}  // namespace leasehold::gate
