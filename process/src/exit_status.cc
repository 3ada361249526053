#include "leasehold/process/exit_status.h"

#include <cstring>

namespace leasehold::process {

std::string ExitStatus::describe() const {
  if (!known()) return "ended in an unknown way";
  if (!by_signal()) return "exited with status " + std::to_string(number_);
  const char* name = sigdescr_np(number_);
  return "was ended by signal " + std::to_string(number_) + " (" + (name ? name : "unknown") + ")";
}

}  // namespace leasehold::process
