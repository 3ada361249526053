#include "cli/probe/bars.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace leasehold::cli {
namespace {

using namespace std::chrono_literals;

Nanos end_after(Nanos end) {
  Nanos power = 1us;
  while (end >= power * 10) power *= 10;
  if (end < power * 2) return power * 2;
  return end < power * 5 ? power * 5 : power * 10;
}

// "1.2ms", "12ms", "1ms"
std::string with_unit(double number, const char* unit) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*f", number < 9.95 ? 1 : 0, number);
  std::string digits = text;
  if (digits.ends_with(".0")) digits.resize(digits.size() - 2);
  return digits + unit;
}

}  // namespace

std::string format_span(Nanos span) {
  const double nanos = static_cast<double>(span.count());
  if (span < 1us) return std::to_string(span.count()) + "ns";
  if (nanos < 999.5e3) return with_unit(nanos / 1e3, "us");
  if (nanos < 999.5e6) return with_unit(nanos / 1e6, "ms");
  if (nanos < 119.5e9) return with_unit(nanos / 1e9, "s");
  if (nanos < 119.5 * 60e9) return with_unit(nanos / 60e9, "m");
  if (nanos < 47.5 * 3600e9) return with_unit(nanos / 3600e9, "h");
  return with_unit(nanos / 86400e9, "d");
}

std::string format_number(double number) {
  char text[32];
  if (number >= 100 && number < 1e7) {
    const double unit = std::pow(10, std::floor(std::log10(number)) - 2);
    std::snprintf(text, sizeof text, "%.0f", std::round(number / unit) * unit);
  } else {
    std::snprintf(text, sizeof text, "%.2g", number);
  }
  return text;
}

std::vector<Bar> bars_of(const probe::Histogram& histogram) {
  std::vector<Bar> bars;
  for (const auto& bucket : histogram.buckets()) {
    if (bars.empty()) bars.push_back({0ns, 1us, 0});
    while (bucket.lowest >= bars.back().to) {
      const Nanos from = bars.back().to;
      if (bars.size() == 1 && bars.back().count == 0) bars.clear();
      bars.push_back({from, end_after(from), 0});
    }
    bars.back().count += bucket.count;
  }
  return bars;
}

double log_height(std::uint64_t count, std::uint64_t largest) {
  if (count == 0) return 0;
  // One of the largest still has a bar that can be seen.
  return std::log2(1 + static_cast<double>(count)) / std::log2(1 + static_cast<double>(largest));
}

}  // namespace leasehold::cli
