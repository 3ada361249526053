// The wall clock of programs that ask the C library for it, moved while they run.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rig/temp_folder.h"

namespace leasehold::rig {

// What a program that is started with environment() sees follows move(). Throws
// std::runtime_error if the library is missing.
class ClockShim {
 public:
  explicit ClockShim(std::string library);  // the file of leasehold_clock_shim
  using Environment = std::vector<std::pair<std::string, std::optional<std::string>>>;
  Environment environment() const;
  void move(std::chrono::seconds by);

 private:
  TempFolder folder_;
  std::string library_;
};

}  // namespace leasehold::rig
