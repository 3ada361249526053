#include "leasehold/probe/sizing.h"

#include <algorithm>
#include <cmath>

#include "engine/timing.h"
#include "leasehold/ttl.h"

namespace leasehold::probe {
namespace {

constexpr double kSecondsPerDay = 86400;
constexpr double kDoubt = 0.05;

double seconds(Nanos span) {
  return std::chrono::duration<double>(span).count();
}

// Makes jittered() give its longest.
class LongestJitter final : public Random {
 public:
  std::uint64_t next() override { return 10; }
};

bool survives(Millis ttl, Nanos pause, int missed) {
  LongestJitter longest;
  Nanos renewed = engine::renewal_interval(ttl) + pause;
  for (int failures = 0; failures < missed; ++failures) {
    renewed += engine::renewal_retry(failures, ttl, longest) + pause;
  }
  return renewed <= ttl - engine::drift_allowance(ttl);
}

// P(X <= seen) for a Poisson variable with this mean.
double at_most(std::uint64_t seen, double mean) {
  double sum = 0;
  for (std::uint64_t k = 0; k <= seen; ++k) {
    const auto n = static_cast<double>(k);
    sum += std::exp(n * std::log(mean) - mean - std::lgamma(n + 1));
  }
  return sum;
}

}  // namespace

Left left_of(Millis ttl) {
  const Nanos whole = ttl - engine::drift_allowance(ttl);
  return {whole - engine::renewal_interval(ttl), whole};
}

double outlives(Nanos pause, const Left& left) {
  const double share = seconds(pause - left.least) / seconds(left.most - left.least);
  return std::clamp(share, 0.0, 1.0);
}

double Workload::at_once() const {
  return per_second * seconds(in_flight);
}

Violations violations(const Measurement& measured, const Workload& work) {
  const Left left = left_of(work.ttl);
  const double days = seconds(measured.length) / kSecondsPerDay;
  Violations result;
  double too_long = 0;
  for (const Histogram::Bucket& bucket : measured.pauses.buckets()) {
    const Nanos longest = std::min(bucket.highest, measured.pauses.max());
    if (longest <= left.least) continue;
    result.pauses += bucket.count;
    too_long += static_cast<double>(bucket.count) * outlives(longest, left);
  }
  result.per_day = too_long / days * work.at_once();
  result.per_day_most = upper_bound(result.pauses) / days * work.at_once();
  result.days_for_less_than_one = upper_bound(0) * work.at_once();
  return result;
}

double upper_bound(std::uint64_t seen) {
  const auto n = static_cast<double>(seen);
  if (seen > 200) {  // the approximation of Wilson and Hilferty, exact to a thousandth by then
    const double root = 1 - 1 / (9 * (n + 1)) + 1.6449 / (3 * std::sqrt(n + 1));
    return (n + 1) * root * root * root;
  }
  double low = n;
  double high = n + 10 + 5 * std::sqrt(n);
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (at_most(seen, std::max(middle, 1e-9)) > kDoubt ? low : high) = middle;
  }
  return high;
}

std::optional<Millis> surviving_ttl(Nanos pause, int missed) {
  if (!survives(Ttl::kMax, pause, missed)) return std::nullopt;
  Millis low = Ttl::kMin - Millis(1);
  Millis high = Ttl::kMax;
  while (high - low > Millis(1)) {
    const Millis middle = (low + high) / 2;
    (survives(middle, pause, missed) ? high : low) = middle;
  }
  return high;
}

}  // namespace leasehold::probe
