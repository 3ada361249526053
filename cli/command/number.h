// How many, as people write it.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "cli/command/range.h"
#include "leasehold/error.h"

namespace leasehold::cli {

inline constexpr Range<std::int64_t> kAnyNumber{std::numeric_limits<std::int64_t>::min(),
                                                std::numeric_limits<std::int64_t>::max()};

// Fails with `invalid`: "'x' is not a whole number from 1 to 64".
[[nodiscard]] Result<std::int64_t> parse_number(std::string_view text, Range<std::int64_t> range);

}  // namespace leasehold::cli
