// `leasehold demo`: the whole idea as a story of real processes.
#pragma once

#include <cstdint>
#include <string_view>

#include "cli/command/exit_status.h"
#include "leasehold/time.h"

namespace leasehold::cli {

class Signals;

// The lock that the demo's workers share, and the resource behind the fence.
inline constexpr std::string_view kDemoLock = "account/7";
inline constexpr Millis kDemoTtl{3000};

// Plays the story and gives `done` only if everything happened as it was told.
// Starts processes, and a folder in the temporary one; both are gone when it returns.
ExitStatus run_demo(Signals& signals);

}  // namespace leasehold::cli
