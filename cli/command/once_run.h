// What `run --once` stores under a key, for `once show` to read.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "leasehold/store.h"

namespace leasehold::cli {

struct OnceRun {
  std::vector<std::string> command;
  int status = 0;
};

OnceRecord record_of(const OnceRun& run);

// Nothing if another program stored it.
std::optional<OnceRun> run_in(const OnceRecord& record);

}  // namespace leasehold::cli
