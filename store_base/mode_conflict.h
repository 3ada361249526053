// How a lock is used, for a request that does not fit to it.
#pragma once

#include "leasehold/error.h"
#include "leasehold/mode.h"
#include "leasehold/name.h"

namespace leasehold {

// `set`: by an operator.
Error mode_conflict(const LockName& lock, Mode asked, Mode used, bool set = false);

// For an operator who sets permits.
Error in_use_without_permits(const LockName& lock, Mode used);

}  // namespace leasehold
