#include "cli/program/commands.h"

#include "cli/command/subcommand.h"

namespace leasehold::cli {

Commands program_commands() {
  static constexpr SubcommandEntry kAll[] = {
      {"completion", "Print the completion script of a shell", make_completion},
      {"version", "Print the version", make_version},
      {"man", "Print the manual page", make_man, true},
  };
  return kAll;
}

}  // namespace leasehold::cli
