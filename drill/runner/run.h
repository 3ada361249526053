// A drill, from its first worker to its verdict.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "leasehold/drill/history.h"
#include "leasehold/drill/outcome.h"
#include "plan.h"

namespace leasehold::drill {

struct Progress {
  std::chrono::nanoseconds elapsed{};
  std::uint64_t cycles = 0;
  std::uint64_t refused = 0;
  std::uint64_t accepted = 0;
  std::uint64_t faults = 0;
};

struct Hooks {
  // Readable: the drill is looked at by `interrupted`, which says whether to end with what there
  // is.
  int wake = -1;
  std::function<bool()> interrupted = {};
  std::function<void(const Progress&)> progress = {};  // a few times a second
};

struct Drilled {
  Outcome outcome;
  History history;  // of workers, resource and nemesis
};

// Starts servers and processes, and a folder in the temporary one; all are gone when it returns.
// Call it from the thread that lives longest: the processes end with it. Fails with `invalid` or
// `unsupported` for a plan that cannot be, `unavailable` if a server or a worker does not start,
// `internal` if a worker ends by itself.
[[nodiscard]] Result<Drilled> run_drill(const Plan& plan, const Hooks& hooks);

}  // namespace leasehold::drill
