// How many per interval, as people write it.
#pragma once

#include <string>
#include <string_view>

#include "leasehold/rate_limit.h"

namespace leasehold::cli {

// "10/1m". Fails with `invalid`, and says what a rate is.
[[nodiscard]] Result<Rate> parse_rate(std::string_view text);

std::string written(const Rate& rate);

}  // namespace leasehold::cli
