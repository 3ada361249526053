#include "cli/command/duration.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <optional>

#include "kit/text/number.h"
#include "kit/text/shown_word.h"

namespace leasehold::cli {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kShown = 40;  // letters of what was given

struct Unit {
  std::string_view suffix;
  Millis length;
};
constexpr Unit kUnits[] = {{"h", 1h}, {"m", 1min}, {"s", 1s}, {"ms", 1ms}};

std::optional<Millis> unit_of(std::string_view suffix, bool zero) {
  for (const Unit& unit : kUnits) {
    if (unit.suffix == suffix) return unit.length;
  }
  if (suffix == "d") return 24h;  // as "24h" it is told
  if (suffix.empty() && zero) return 1ms;
  return std::nullopt;
}

// Nothing: it is not a duration. What is too long for a number is longer than any.
std::optional<Millis> read(std::string_view text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  if (digits == 0) return std::nullopt;
  const auto count = kit::number_in<std::int64_t>(text.substr(0, digits));
  const auto unit = unit_of(text.substr(digits), count == 0);
  if (!unit) return std::nullopt;
  return count && *count <= Millis::max() / *unit ? *unit * *count : Millis::max();
}

std::string two_parts(long long large, const char* large_unit, long long small,
                      const char* small_unit) {
  char text[64];
  std::snprintf(text, sizeof text, "%lld%s%02lld%s", large, large_unit, small, small_unit);
  return text;
}

}  // namespace

Result<Millis> parse_duration(std::string_view text, Range<Millis> range) {
  const auto span = read(text);
  if (span && range.has(*span)) return *span;
  const std::string limits = words_of(range, kAnyDuration);
  const std::string must_be = limits.empty() ? "" : "it must be " + limits;
  std::string why = "is out of range: " + must_be;
  if (!span) {
    why = "is not a duration; write it with its unit, as in 1500ms, 30s, 5m, 1h or 30d";
    if (!limits.empty()) why += "; " + must_be;
  } else if (*span > range.most && range.most == kAnyDuration.most) {
    why = "is longer than a year";
  }
  const std::string given = kit::shown(std::string(text)).substr(0, kShown);
  return fail(ErrorCode::invalid, "'" + given + "' " + why);
}

std::string written(Millis span) {
  if (span == 0ms) return "0";
  for (const Unit& unit : kUnits) {
    if (span % unit.length == 0ms)
      return std::to_string(span / unit.length) + std::string(unit.suffix);
  }
  return "";  // every duration is a number of milliseconds
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
