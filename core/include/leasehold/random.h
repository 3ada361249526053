// Where random bits come from. Injected, so that a simulation can repeat itself.
#pragma once

#include <array>
#include <cstdint>

namespace leasehold {

class Random {
 public:
  virtual ~Random() = default;

  // 64 unpredictable bits. Thread safe, does not block.
  virtual std::uint64_t next() = 0;

  // 128 of them. The same, unless the source has a quicker way.
  virtual std::array<std::uint64_t, 2> next_two() { return {next(), next()}; }
};

// The kernel's generator. Lives as long as the program.
Random& system_random();

}  // namespace leasehold
