// How long, as people write it.
#pragma once

#include <string>
#include <string_view>

#include "leasehold/error.h"
#include "leasehold/time.h"

namespace leasehold::cli {

// "1500ms", "30s", "5m", "1h" or "0"; at most a year. Fails with `invalid`.
[[nodiscard]] Result<Millis> parse_duration(std::string_view text);

// "950ms", "29.5s", "4m10s", "2h05m": for people, rounded.
std::string format_duration(Millis span);

}  // namespace leasehold::cli
