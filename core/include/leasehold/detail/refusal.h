// The sentence in which a fence refuses: the same words at every resource.
#pragma once

#include <cstdint>
#include <string>

#include "leasehold/error.h"
#include "leasehold/name.h"
#include "leasehold/token.h"

namespace leasehold::detail {

// What the fence has seen: the number that an entering token is compared with, and whose it is.
struct Threshold {
  std::string lineage;
  std::int64_t token = 0;
};

// `fenced_out` with both numbers, for a token that was refused at `mark`. `once`: it came in a mode
// in which a token may enter only once.
Error refusal(const ResourceName& resource, const Token& token, const Threshold& mark, bool once);

// `invalid`, for an adoption that would lower the mark of the same lineage.
Error would_lower(const ResourceName& resource, std::int64_t mark, TokenNumber at_least);

}  // namespace leasehold::detail
