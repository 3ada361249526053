// A TCP socket that never blocks for long.
#pragma once

#include <chrono>

#include "kit/system/fd.h"
#include "leasehold/error.h"
#include "net/resolver.h"
#include "waiting/call_wait.h"

namespace leasehold::net {

// recv() without MSG_DONTWAIT gives up after this time. An answer that comes sooner costs one
// system call instead of two; a stop or the end of the client is noticed that much later.
inline constexpr std::chrono::milliseconds kShortWait{20};

// Tries one address after the other. `unavailable` with the system's words, or `cancelled`.
[[nodiscard]] Result<kit::Fd> connect_to_any(const std::vector<SocketAddress>& addresses,
                                             const CallContext& context,
                                             const waiting::Alarm& closing);

}  // namespace leasehold::net
