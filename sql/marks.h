// Marks, as every fence in a SQL database selects them.
#pragma once

#include <vector>

#include "leasehold/fence_admin.h"
#include "leasehold/sql/statement.h"

namespace leasehold::sql {

// Of rows with resource, lineage, token, request, refusals and claim, and where readers are known
// the token and request of the highest. `unavailable` if one was not written by a fence.
[[nodiscard]] Result<std::vector<FenceMark>> marks_of(const Rows& rows);

// The error of an entry that has failed and is rolled back by now: counted, if it is a refusal.
// `count` does that.
template <class Count>
[[nodiscard]] Error counted(Error error, const Count& count) {
  if (error.code != ErrorCode::fenced_out) return error;
  if (Status ok = count(); !ok) {
    error.store_words += "; the refusal could not be counted: " + to_string(ok.error());
  }
  return error;
}

}  // namespace leasehold::sql
