// One subcommand of the program: what it takes, and what it does.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "cli/command/exit_status.h"

namespace leasehold::cli {

class Arguments;

class Subcommand {
 public:
  virtual ~Subcommand() = default;

  // Tells its arguments, and where their values go. Called once, before execute().
  virtual void declare(Arguments& arguments) = 0;

  // Has said why on stderr if it did not end well.
  virtual Ending execute() = 0;
};

template <class Command>
std::unique_ptr<Subcommand> make() {
  return std::make_unique<Command>();
}

struct SubcommandEntry {
  std::string_view name;
  std::string_view summary;
  std::unique_ptr<Subcommand> (*make)();  // null: this build was made without it
  bool hidden = false;                    // works, but help and completion do not show it
};

// All of this program, in the order of --help; written by leasehold_program() in CMakeLists.txt
// from what each command gives as `SubcommandEntry <name>_command()`.
const std::vector<SubcommandEntry>& subcommands();

}  // namespace leasehold::cli
