#include "cli/drill/commands.h"

#include "cli/command/subcommand.h"

namespace leasehold::cli {

Commands drill_commands() {
  static constexpr SubcommandEntry kAll[] = {
      {"drill", "Freeze real holders past their leases, and see what the fence does", make_drill},
      {"drill-worker", "One worker of the drill", make_drill_worker, true},
  };
  return kAll;
}

}  // namespace leasehold::cli
