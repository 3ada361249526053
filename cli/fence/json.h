// Marks, guards and warnings for programs.
#pragma once

#include <string>
#include <vector>

#include "doctor/marks_ahead.h"
#include "leasehold/fence_admin.h"

namespace leasehold::cli {

std::string fence_json(const std::vector<FenceMark>& marks, const std::vector<GuardedTable>& tables,
                       const std::vector<FenceFloor>& floors,
                       const std::vector<doctor::MarkAhead>& ahead);

}  // namespace leasehold::cli
