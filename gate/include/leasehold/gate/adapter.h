// The HTTP gate as a fenced resource: its marks, for the operator.
#pragma once

#include <vector>

#include "leasehold/registry.h"

namespace leasehold::gate {

// For Registry::add. URLs: "gate:/absolute/folder" or "gate:relative/folder", the gate's state
// folder. There is a fence and no store.
std::vector<Adapter> adapters();

}  // namespace leasehold::gate
