// How every fence says no: one error, one set of sentences.
#pragma once

#include <cstdint>
#include <string>

#include "leasehold/error.h"
#include "leasehold/name.h"
#include "leasehold/token.h"

namespace leasehold::detail {

enum class Objection {
  foreign,  // a token of another lineage
  lower,    // another holder has entered since
  twice,    // the same number from another request
  once,     // it has entered already, in once mode
  order,    // a later write of the same holder was done before
};

// What stands at the resource when it objects.
struct Standing {
  std::string lineage;
  std::int64_t mark = 0;
};

// `fenced_out`, with both numbers.
Error refusal(const ResourceName& resource, const Token& token, Objection why,
              const Standing& standing);

// `invalid`: adopting would lower the mark of the lineage that the resource follows already.
Error adoption_goes_back(const ResourceName& resource, std::int64_t mark, TokenNumber at_least);

}  // namespace leasehold::detail
