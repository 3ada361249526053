// One subcommand of the program: what it takes, and what it does.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace leasehold::cli {

class Arguments;

class Subcommand {
 public:
  virtual ~Subcommand() = default;

  // Tells its arguments, and where their values go. Called once, before execute().
  virtual void declare(Arguments& arguments) = 0;

  // Gives the program's exit status; has said why on stderr if it is not zero.
  virtual int execute() = 0;
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

// Those of one family, in the order of --help.
using Commands = std::span<const SubcommandEntry>;

// Those of all families of this program; written by leasehold_program() in CMakeLists.txt.
const std::vector<SubcommandEntry>& subcommands();

}  // namespace leasehold::cli
