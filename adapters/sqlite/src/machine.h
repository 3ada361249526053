// Which machine, which boot of it, and its boot clock: what the expiry times in the file mean.
#pragma once

#include <string>

#include "leasehold/error.h"
#include "leasehold/time.h"

namespace leasehold::sqlite {

struct MachineIdentity {
  std::string machine;
  std::string boot;
};

// LEASEHOLD_MACHINE_ID or /etc/machine-id, and the kernel's boot id. `unsupported` without them.
[[nodiscard]] Result<MachineIdentity> this_machine();

// CLOCK_BOOTTIME as the machine's first process sees it: the same in every time namespace.
const Clock& machine_clock();

}  // namespace leasehold::sqlite
