// A TCP socket that never blocks for long.
#pragma once

#include <chrono>

#include "leasehold/detail/call_wait.h"
#include "leasehold/detail/fd.h"
#include "leasehold/error.h"
#include "resolver.h"

namespace leasehold::resp {

// recv() without MSG_DONTWAIT gives up after so long. An answer that comes sooner costs one system
// call instead of two; a stop or the end of the client is heard so much later.
inline constexpr std::chrono::milliseconds kShortWait{20};

// Tries one address after the other. `unavailable` with the system's words, or `cancelled`.
[[nodiscard]] Result<detail::Fd> connect_to_any(const std::vector<SocketAddress>& addresses,
                                                const CallContext& context,
                                                const detail::Alarm& closing);

}  // namespace leasehold::resp
