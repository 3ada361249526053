// The sentence in which a fence refuses: the same words at every resource.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "leasehold/error.h"
#include "leasehold/name.h"
#include "leasehold/token.h"

namespace leasehold::detail {

// What the fence has seen: the number that an entering token is compared with, and whose it is.
struct Threshold {
  std::string lineage;
  std::int64_t token = 0;
  bool adopted = false;  // nobody has entered yet; the operator chose the number
};

enum class Objection {
  foreign,  // a token of another lineage
  lower,    // another holder has entered since, or the operator adopted a higher number
  twice,    // the same number from another request
  once,     // it has entered already, in once mode
  order,    // a later write of the same holder was done before
};

// `fenced_out` with both numbers.
Error refusal(const ResourceName& resource, const Token& token, Objection why,
              const Threshold& mark);

// The same for a token of which only is known that it was refused at `mark`: the numbers tell why.
// `once`: it came in a mode in which a token may enter only once.
Error refusal(const ResourceName& resource, const Token& token, const Threshold& mark, bool once);

// `invalid`, for an adoption that would lower the mark of the same lineage.
Error would_lower(const ResourceName& resource, std::int64_t mark, TokenNumber at_least);

// `unavailable`, for a fence at which marks can be lowered and deleted by accident.
Error marks_not_kept();

// `invalid`, for a reset of a resource that the fence does not know.
Error unknown_resource(const ResourceName& resource);

}  // namespace leasehold::detail
