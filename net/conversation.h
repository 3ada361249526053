// One question to a server that answers and hangs up: a word of four letters, a page of HTTP/1.0.
#pragma once

#include <cstddef>
#include <string>

#include "leasehold/error.h"
#include "leasehold/store.h"
#include "leasehold/url.h"

namespace leasehold::net {

inline constexpr std::size_t kLongestAnswer = 8 << 20;

// Connects, sends, and reads until the other side closes.
// `unavailable` with the reason, also for a longer answer; `cancelled` for the stop token.
[[nodiscard]] Result<std::string> converse(const HostPort& with, const std::string& question,
                                           const CallContext& context);

}  // namespace leasehold::net
