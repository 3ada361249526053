// Numbers in what a Redis server says of itself. It may say anything.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "doctor/findings.h"
#include "leasehold/resp/value.h"

namespace leasehold::redis {

// The digits at the beginning; 0 if there are none, or more than fit.
std::int64_t number_in(const std::string& digits);

// The reply to TIME; nothing if it is none, or of a time that no clock here shows.
std::optional<doctor::WallTime> time_in(const resp::Value& reply);

// Both of INFO. Never negative; a time that is too long for a clock is its longest.
doctor::Nanos uptime_in(const std::string& info);
// What share of its maxmemory is in use; nothing if it has no limit.
std::optional<std::int64_t> memory_in_percent(const std::string& info);

}  // namespace leasehold::redis
