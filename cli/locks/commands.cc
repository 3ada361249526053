#include "cli/locks/commands.h"

#include "cli/command/subcommand.h"

namespace leasehold::cli {

Commands locks_commands() {
  static constexpr SubcommandEntry kAll[] = {
      {"ls", "List all locks of a store", make_ls},
      {"show", "Show everything about one lock", make_show},
      {"release", "Take a lock away from a dead or stuck holder", make_release},
      {"rotate-lineage", "Begin a new lineage after a restore", make_rotate_lineage},
  };
  return kAll;
}

}  // namespace leasehold::cli
