#include "cli/patterns/commands.h"

#include "cli/command/subcommand.h"

namespace leasehold::cli {

Commands patterns_commands() {
  static constexpr SubcommandEntry kAll[] = {
      {"once", "Look after the idempotency keys in a database", make_once},
      {"outbox", "Relay messages that were written in a transaction", make_outbox},
      {"serial", "Prepare a database for serial queues", make_serial},
  };
  return kAll;
}

}  // namespace leasehold::cli
