#include "leasehold/random.h"

#include <sys/random.h>

#include <cerrno>
#include <cstdlib>

namespace leasehold {
namespace {

class KernelRandom final : public Random {
 public:
  std::uint64_t next() override {
    std::uint64_t bits = 0;
    while (getrandom(&bits, sizeof bits, 0) != sizeof bits) {
      if (errno != EINTR) std::abort();  // cannot happen for 8 bytes; identities must not repeat
    }
    return bits;
  }
};

}  // namespace

Random& system_random() {
  static KernelRandom random;
  return random;
}

}  // namespace leasehold
