// Where random bits come from. Injected, so that a simulation can repeat itself.
#pragma once

#include <cstdint>

namespace leasehold {

class Random {
 public:
  virtual ~Random() = default;

  // 64 unpredictable bits. Thread safe, does not block.
  virtual std::uint64_t next() = 0;
};

// The kernel's generator. Lives as long as the program.
Random& system_random();

}  // namespace leasehold
