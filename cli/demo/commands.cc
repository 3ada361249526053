#include "cli/demo/commands.h"

#include "cli/command/subcommand.h"

namespace leasehold::cli {

Commands demo_commands() {
  static constexpr SubcommandEntry kAll[] = {
      {"demo", "See why a lock needs a fence, in ten seconds", make_demo},
      {"demo-worker", "One worker of the demo", make_demo_worker, true},
  };
  return kAll;
}

}  // namespace leasehold::cli
