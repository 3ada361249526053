// A histogram in the few bars that a person can look at.
#pragma once

#include <string>
#include <vector>

#include "leasehold/probe/histogram.h"

namespace leasehold::cli {

using probe::Nanos;

// "72us", "1.2ms", "30s", "5m", "2h", "3d": rounded to two or three digits.
std::string format_span(Nanos span);

// "0", "0.31", "7.5", "25900", "2.6e+07".
std::string format_number(double number);

struct Bar {
  Nanos from;
  Nanos to;
  std::uint64_t count;
};

// From the first that is not empty to the last, their ends at 1, 2 and 5 times powers of ten; the
// first from 0 to 1 us.
std::vector<Bar> bars_of(const probe::Histogram& histogram);

// How long a bar is on a logarithmic scale, from 0 (none) to 1 (the largest of them).
double log_height(std::uint64_t count, std::uint64_t largest);

struct Quantile {
  const char* name;
  double share;
};
inline constexpr Quantile kQuantiles[] = {
    {"p50", 0.5}, {"p99", 0.99}, {"p99.9", 0.999}, {"p99.99", 0.9999}, {"max", 1}};

}  // namespace leasehold::cli
