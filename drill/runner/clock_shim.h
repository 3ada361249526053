// The wall clock of servers that ask the C library for it, moved while they run.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rig/temp_folder.h"

namespace leasehold::drill {

// What a server that is started with environment() sees follows move(). Throws std::runtime_error
// if the shim is not installed.
class ClockShim {
 public:
  ClockShim();
  using Environment = std::vector<std::pair<std::string, std::optional<std::string>>>;
  Environment environment() const;
  void move(std::chrono::seconds by);

 private:
  rig::TempFolder folder_;
  std::string shim_;
};

}  // namespace leasehold::drill
