// What a store that asks for each lease apart answers to a batch of renewals.
#pragma once

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "leasehold/error.h"
#include "leasehold/store.h"

namespace leasehold {

// `doubt`: why something is unknown. If everything is, that is the answer.
inline Result<std::vector<RenewReply>> unless_all_unknown(std::vector<RenewReply> replies,
                                                          std::optional<Error> doubt) {
  const bool some_known = std::any_of(replies.begin(), replies.end(), [](RenewReply reply) {
    return reply != RenewReply::unknown;
  });
  if (doubt && !some_known) return fail(std::move(*doubt));
  return replies;
}

}  // namespace leasehold
