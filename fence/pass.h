// Entering a mark that is read, judged here, and written back if it has not changed meanwhile: for
// resources whose transactions can compare, but not run a script.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "fence/rule.h"
#include "leasehold/error.h"
#include "leasehold/store.h"

namespace leasehold::fence {

// A mark as it was read, and the version of it that a transaction can compare; 0: there is none.
struct SeenMark {
  Mark mark;
  std::int64_t version = 0;
};

enum class Commit {
  done,
  conflict,  // the mark has another version by now; nothing was done
};

// What one resource offers for it. Each call blocks. `outcome_unknown` as everywhere.
struct Pass {
  std::function<Result<SeenMark>()> read;
  // The mark and the user's work, in one transaction, if the version is still the one seen. Writes
  // the mark whenever there is work that writes, so that no two transactions can follow one
  // version.
  std::function<Result<Commit>(const SeenMark& seen, const Mark& next)> commit;
  // Counts a refusal, durably.
  std::function<Status()> count_refusal;
};

enum class Passed {
  done,
  repeated,  // it was done, by an earlier call or by this one, and what it answered is not known
};

// Until it is done, refused, or the time is over. A transaction whose reply was lost is looked for
// in the mark: either it is there, or the version is as before and it is tried again, or somebody
// else came, and it is `outcome_unknown`.
[[nodiscard]] Result<Passed> pass(const ResourceName& resource, const Attempt& attempt,
                                  const Pass& at, const CallContext& context);

// The same for an adoption.
[[nodiscard]] Status pass_adoption(const ResourceName& resource, const Lineage& lineage,
                                   TokenNumber at_least, const Pass& at,
                                   const CallContext& context);

// And for forgetting the mark: an empty record takes its place. `invalid` if there is none.
[[nodiscard]] Status pass_reset(const ResourceName& resource, const Pass& at,
                                const CallContext& context);

}  // namespace leasehold::fence
