// What only a drill ends with.
#pragma once

#include "cli/command/exit_status.h"

namespace leasehold::cli {

inline constexpr ExitStatus kDamage{1};
inline constexpr ExitStatus kTooLittle{3};

}  // namespace leasehold::cli
