#include "leasehold/probe/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace leasehold::probe {
namespace {

// A length is kept to its leading bit and the kBits after it.
constexpr int kBits = 7;
constexpr std::size_t kPerOctave = std::size_t{1} << kBits;
constexpr int kValueBits = 63;
constexpr std::size_t kBuckets = (kValueBits - kBits + 1) * kPerOctave;
static_assert(Histogram::kRelativeError * kPerOctave == 1.0);

std::size_t index_of(std::uint64_t length) {
  const int width = static_cast<int>(std::bit_width(length));
  const int dropped = std::max(width - kBits - 1, 0);
  return static_cast<std::size_t>(dropped) * kPerOctave +
         static_cast<std::size_t>(length >> dropped);
}

std::uint64_t lowest_of(std::size_t index) {
  if (index < kPerOctave) return index;
  const std::size_t dropped = index / kPerOctave - 1;
  return static_cast<std::uint64_t>(kPerOctave + index % kPerOctave) << dropped;
}

std::uint64_t highest_of(std::size_t index) {
  return index + 1 < kBuckets ? lowest_of(index + 1) - 1
                              : std::uint64_t{std::numeric_limits<Nanos::rep>::max()};
}

std::uint64_t number(Nanos length) {
  return static_cast<std::uint64_t>(std::max<Nanos::rep>(length.count(), 0));
}

Nanos nanos(std::uint64_t number) {
  return Nanos(static_cast<Nanos::rep>(number));
}

}  // namespace

Histogram::Histogram() : counts_(kBuckets) {}

void Histogram::add_to(std::size_t index, std::uint64_t times) {
  counts_[index] += times;
  count_ += times;
}

void Histogram::add(Nanos length, std::uint64_t times) {
  if (times == 0) return;
  add_to(index_of(number(length)), times);
  max_ = std::max(max_, length);
}

void Histogram::add_falling(Nanos first, Nanos step, std::uint64_t times) {
  if (times == 0) return;
  const std::uint64_t by = number(step);
  // Upwards from the shortest, one bucket after the other.
  for (std::uint64_t length = number(first) - (times - 1) * by; times > 0;) {
    const std::size_t index = index_of(length);
    const std::uint64_t here = std::min(times, (highest_of(index) - length) / by + 1);
    add_to(index, here);
    length += here * by;
    times -= here;
  }
  max_ = std::max(max_, first);
}

Nanos Histogram::quantile(double q) const {
  const double wanted = std::ceil(q * static_cast<double>(count_));
  const auto rank = std::clamp<std::uint64_t>(static_cast<std::uint64_t>(wanted), 1,
                                              std::max<std::uint64_t>(count_, 1));
  std::uint64_t below = 0;
  for (std::size_t index = 0; index < counts_.size(); ++index) {
    below += counts_[index];
    if (below >= rank) return std::min(nanos(highest_of(index)), max_);
  }
  return Nanos(0);
}

std::vector<Histogram::Bucket> Histogram::buckets() const {
  std::vector<Bucket> filled;
  for (std::size_t index = 0; index < counts_.size(); ++index) {
    if (counts_[index] == 0) continue;
    filled.push_back({nanos(lowest_of(index)), nanos(highest_of(index)), counts_[index]});
  }
  return filled;
}

}  // namespace leasehold::probe
