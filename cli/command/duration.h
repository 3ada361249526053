// How long, as people write it.
#pragma once

#include <string>
#include <string_view>

#include "cli/command/range.h"
#include "leasehold/error.h"
#include "leasehold/time.h"
#include "leasehold/ttl.h"

namespace leasehold::cli {

inline constexpr Range<Millis> kAnyDuration{Millis(0), std::chrono::hours(8784)};  // a leap year
inline constexpr Range<Millis> kTtls{Ttl::kMin, Ttl::kMax};
inline constexpr Range<Millis> kAboveZero{Millis(1), kAnyDuration.most};

// "1500ms", "30s", "5m", "1h" or "0". Fails with `invalid`, and says what is in `range`.
[[nodiscard]] Result<Millis> parse_duration(std::string_view text,
                                            Range<Millis> range = kAnyDuration);

// "950ms", "29.5s", "4m10s", "2h05m": for people, rounded.
std::string format_duration(Millis span);

}  // namespace leasehold::cli
