// What is left to chance in a drill, from one seed. The machine itself is not: two runs of one seed
// differ in time.
#pragma once

#include <cstdint>
#include <random>

namespace leasehold::drill {

class Chance {
 public:
  explicit Chance(std::uint64_t seed) : bits_(seed) {}
  std::uint64_t below(std::uint64_t limit) {
    return std::uniform_int_distribution<std::uint64_t>(0, limit - 1)(bits_);
  }
  bool one_in(std::uint64_t n) { return below(n) == 0; }

 private:
  std::mt19937_64 bits_;
};

}  // namespace leasehold::drill
