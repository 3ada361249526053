#include "leasehold/ttl.h"

#include <string>

namespace leasehold {

Result<Ttl> Ttl::of(Millis length) {
  if (length < kMin || length > kMax) {
    return fail(ErrorCode::invalid,
                "ttl is " + std::to_string(length.count()) + " ms; it must be from 100 ms to 24 h");
  }
  return Ttl(length);
}

}  // namespace leasehold
