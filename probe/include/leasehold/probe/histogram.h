// How often which length was seen: fixed memory, bounded relative error, whatever is recorded.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace leasehold::probe {

using Nanos = std::chrono::nanoseconds;

// Lengths from 0 to the largest that fits, in buckets: exact below 128 ns, above that at most 1/128
// of the length wide. About 57 KiB, allocated at once: recording neither allocates nor throws. Not
// thread safe.
class Histogram {
 public:
  static constexpr double kRelativeError = 1.0 / 128;

  struct Bucket {
    Nanos lowest;
    Nanos highest;
    std::uint64_t count;
  };

  Histogram();

  // A negative length counts as 0.
  void add(Nanos length, std::uint64_t times = 1);

  // first, first - step, first - 2 step, ... : `times` lengths, none of them negative. Takes time
  // by the number of buckets, not of lengths. `step` must be positive.
  void add_falling(Nanos first, Nanos step, std::uint64_t times);

  std::uint64_t count() const { return count_; }
  Nanos max() const { return max_; }  // exact; 0 if empty

  // The length that the share `q` (0 to 1) of all does not exceed. Never too small, and too large
  // by kRelativeError at most. 0 if empty.
  Nanos quantile(double q) const;

  // Only those that are not empty, shortest first.
  std::vector<Bucket> buckets() const;

 private:
  void add_to(std::size_t index, std::uint64_t times);

  std::vector<std::uint64_t> counts_;
  std::uint64_t count_ = 0;
  Nanos max_{0};
};

}  // namespace leasehold::probe
