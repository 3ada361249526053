#include "cli/command/duration.h"

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <optional>

namespace leasehold::cli {
namespace {

using namespace std::chrono_literals;

constexpr Millis kMost = 8784h;  // a leap year

std::optional<Millis> unit_of(std::string_view suffix, bool zero) {
  if (suffix == "ms") return 1ms;
  if (suffix == "s") return 1s;
  if (suffix == "m") return 1min;
  if (suffix == "h") return 1h;
  if (suffix.empty() && zero) return 0ms;
  return std::nullopt;
}

std::string two_parts(long long large, const char* large_unit, long long small,
                      const char* small_unit) {
  char text[64];
  std::snprintf(text, sizeof text, "%lld%s%02lld%s", large, large_unit, small, small_unit);
  return text;
}

}  // namespace

Result<Millis> parse_duration(std::string_view text) {
  const auto wrong = [&](const char* why) {
    return fail(ErrorCode::invalid, "'" + std::string(text.substr(0, 40)) + "' " + why);
  };
  std::uint64_t count = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, count);
  if (error == std::errc::result_out_of_range) return wrong("is longer than a year");
  const std::string_view suffix(stop, static_cast<std::size_t>(end - stop));
  const auto unit = error == std::errc() ? unit_of(suffix, count == 0) : std::nullopt;
  if (!unit) return wrong("is not a duration; write it with its unit, as in 1500ms, 30s, 5m or 1h");
  if (unit->count() > 0 && count > static_cast<std::uint64_t>(kMost / *unit)) {
    return wrong("is longer than a year");
  }
  return *unit * static_cast<std::int64_t>(count);
}

std::string format_duration(Millis span) {
  if (span < 0ms) span = 0ms;
  if (span < 1s) return std::to_string(span.count()) + "ms";
  if (span < 1min) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1fs", static_cast<double>(span.count()) / 1000.0);
    return text;
  }
  if (span < 1h) return two_parts(span / 1min, "m", span % 1min / 1s, "s");
  return two_parts(span / 1h, "h", span % 1h / 1min, "m");
}

}  // namespace leasehold::cli
