#include "leasehold/detail/fd.h"

#include <unistd.h>

namespace leasehold::detail {

void Fd::reset() noexcept {
  if (raw_ >= 0) close(std::exchange(raw_, -1));
}

}  // namespace leasehold::detail
