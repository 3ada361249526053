// Who is in the way, for the message of a store that is busy.
#pragma once

#include <string>
#include <utility>

namespace leasehold {

// `kept`: ReleaseCall::keep_for
inline std::string busy_label(std::string owner, bool kept) {
  return std::move(owner) + (kept ? " (which has finished; the lock is kept)" : "");
}

}  // namespace leasehold
