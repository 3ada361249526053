#include "leasehold/random.h"

#include <sys/random.h>

#include <cerrno>
#include <cstdlib>

namespace leasehold {
namespace {

template <class Bits>
Bits from_kernel() {
  Bits bits{};
  while (getrandom(&bits, sizeof bits, 0) != static_cast<ssize_t>(sizeof bits)) {
    if (errno != EINTR) std::abort();  // cannot happen for a few bytes; identities must not repeat
  }
  return bits;
}

class KernelRandom final : public Random {
 public:
  std::uint64_t next() override { return from_kernel<std::uint64_t>(); }
  std::array<std::uint64_t, 2> next_two() override {
    return from_kernel<std::array<std::uint64_t, 2>>();
  }
};

}  // namespace

Random& system_random() {
  static KernelRandom random;
  return random;
}

}  // namespace leasehold
