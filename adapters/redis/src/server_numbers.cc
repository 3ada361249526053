#include "server_numbers.h"

#include <algorithm>

#include "introduction.h"
#include "kit/text/number.h"

namespace leasehold::redis {
namespace {

using doctor::Nanos;
using doctor::WallTime;

// Beyond that, nanoseconds do not fit into their number.
constexpr std::int64_t kMostSeconds =
    std::chrono::duration_cast<std::chrono::seconds>(Nanos::max()).count() - 1;
constexpr std::int64_t kMostMicros = 1'000'000;

}  // namespace

std::int64_t number_in(const std::string& digits) {
  return kit::number_in<std::int64_t>(digits).value_or(0);
}

std::optional<WallTime> time_in(const resp::Value& reply) {
  if (reply.items.size() != 2) return std::nullopt;
  const std::int64_t seconds = number_in(reply.at(0).text);
  const std::int64_t micros = number_in(reply.at(1).text);
  if (seconds < 0 || seconds > kMostSeconds || micros < 0 || micros >= kMostMicros) {
    return std::nullopt;
  }
  return WallTime(std::chrono::seconds(seconds) + std::chrono::microseconds(micros));
}

Nanos uptime_in(const std::string& info) {
  const std::int64_t seconds = number_in(info_field(info, "uptime_in_seconds"));
  return std::chrono::seconds(std::clamp<std::int64_t>(seconds, 0, kMostSeconds));
}

std::optional<std::int64_t> memory_in_percent(const std::string& info) {
  const std::int64_t limit = number_in(info_field(info, "maxmemory"));
  const std::int64_t used = std::max<std::int64_t>(number_in(info_field(info, "used_memory")), 0);
  if (limit <= 0) return std::nullopt;
  // Of very large numbers the last digits do not matter.
  if (used > INT64_MAX / 100) return used / std::max<std::int64_t>(limit / 100, 1);
  return used * 100 / limit;
}

}  // namespace leasehold::redis
