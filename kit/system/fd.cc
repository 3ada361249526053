#include "kit/system/fd.h"

#include <unistd.h>

namespace leasehold::kit {

void Fd::reset() noexcept {
  if (raw_ >= 0) close(std::exchange(raw_, -1));
}

}  // namespace leasehold::kit
