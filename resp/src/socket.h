// A TCP socket that never blocks and never raises a signal.
#pragma once

#include "leasehold/detail/call_wait.h"
#include "leasehold/detail/fd.h"
#include "leasehold/error.h"
#include "resolver.h"

namespace leasehold::resp {

// Tries one address after the other. `unavailable` with the system's words, or `cancelled`.
[[nodiscard]] Result<detail::Fd> connect_to_any(const std::vector<SocketAddress>& addresses,
                                                const CallContext& context,
                                                const detail::Alarm& closing);

}  // namespace leasehold::resp
