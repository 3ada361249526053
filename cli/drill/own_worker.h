// The part of `leasehold drill` that is about the user's own program.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "drill/runner/plan.h"
#include "drill/runner/user_program.h"
#include "leasehold/error.h"

namespace leasehold::cli {

class Arguments;

class OwnWorker {
 public:
  // Declares --lock, --watch and the command after "--".
  void declare(Arguments& arguments);

  bool chosen() const { return !command_.empty(); }
  std::string command_line() const;

  // `invalid` if something was asked for that makes sense only with a command.
  [[nodiscard]] Status check_not_chosen() const;

  // What is common comes from `common`; `faults` as they were typed. Fails with `invalid`.
  [[nodiscard]] Result<drill::UserPlan> plan(const drill::Plan& common,
                                             const std::optional<std::string>& faults) const;

 private:
  std::vector<std::string> command_;
  std::optional<std::string> watch_;
  std::optional<std::string> lock_;
};

}  // namespace leasehold::cli
