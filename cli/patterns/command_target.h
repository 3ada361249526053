// Messages of an outbox as runs of a command.
#pragma once

#include <string>

#include "cli/command/signals.h"
#include "leasehold/outbox.h"

namespace leasehold::cli {

// A command that says "not now": the message is tried again, and that is not counted.
inline constexpr int kNotNow = 75;

// Runs `sh -c command` once per message: the payload on stdin; key, topic, id, idempotency key and
// the relay's token in the environment. Exit status 0: delivered. A command that is told to stop,
// or takes too long, is killed with its whole process group.
class CommandTarget final : public OutboxTarget {
 public:
  CommandTarget(std::string command, const Signals& signals)
      : command_(std::move(command)), signals_(signals) {}

  Status deliver(const OutboxMessage& message, const Delivery& delivery) override;

 private:
  const std::string command_;
  const Signals& signals_;
};

}  // namespace leasehold::cli
