// All chance of a simulated world, from one seed.
#pragma once

#include <array>
#include <cstdint>

#include "leasehold/random.h"

namespace leasehold::simulation {

// xoshiro256**, seeded by splitmix64: fast, and the same everywhere.
class Chance final : public Random {
 public:
  explicit Chance(std::uint64_t seed) {
    for (std::uint64_t& word : state_) {
      seed += 0x9e3779b97f4a7c15;
      std::uint64_t mixed = (seed ^ (seed >> 30)) * 0xbf58476d1ce4e5b9;
      mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
      word = mixed ^ (mixed >> 31);
    }
  }

  std::uint64_t next() override {
    const std::uint64_t result = rotate(state_[1] * 5, 7) * 9;
    const std::uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = rotate(state_[3], 45);
    return result;
  }

  // From 0 to limit - 1.
  std::uint64_t below(std::uint64_t limit) { return next() % limit; }

  // From `least` to `most`.
  std::int64_t between(std::int64_t least, std::int64_t most) {
    return least + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(most - least) + 1));
  }

  bool one_in(std::uint64_t times) { return below(times) == 0; }

  // Happens in so many of a thousand cases.
  bool per_mille(int cases) { return static_cast<int>(below(1000)) < cases; }

 private:
  static std::uint64_t rotate(std::uint64_t word, int by) {
    return (word << by) | (word >> (64 - by));
  }

  std::array<std::uint64_t, 4> state_;
};

}  // namespace leasehold::simulation
