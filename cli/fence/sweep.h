// `leasehold fence sweep` and `admit`: for fences of so many resources that old marks must go.
#pragma once

#include <optional>
#include <string>

#include "cli/command/exit_status.h"
#include "leasehold/time.h"

namespace leasehold::cli {

class Arguments;

class FenceSweep {
 public:
  // Adds its commands below `fence`.
  void declare(Arguments& fence);

  // One of them was chosen.
  bool chosen() const;
  ExitStatus execute() const;

 private:
  void declare_url(Arguments& arguments);
  ExitStatus sweep() const;
  ExitStatus admit() const;

  Arguments* sweep_ = nullptr;
  Arguments* admit_ = nullptr;
  std::string url_;
  std::optional<Millis> older_than_;
  std::string store_;
};

}  // namespace leasehold::cli
