// One delivery of a message by another program.
#pragma once

#include <string>

#include "cli/command/signals.h"
#include "leasehold/outbox.h"
#include "leasehold/process/child.h"
#include "waiting/call_wait.h"

namespace leasehold::cli {

struct DeliveryEnd {
  process::ExitStatus status;
  std::string out;  // what it wrote to a piped stdout: few bytes
};

// Runs the command in a process group of its own, with the payload on its stdin, until it ends.
// What is left of the group then is killed. Fails with `unavailable` if it cannot be started;
// `timeout` or `cancelled` if it had to be killed at the deadline or because of the stop token.
[[nodiscard]] Result<DeliveryEnd> run_delivery(process::Command command, const std::string& payload,
                                               const CallContext& context, const Signals& signals);

}  // namespace leasehold::cli
