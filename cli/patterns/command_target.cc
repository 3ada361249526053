#include "cli/patterns/command_target.h"

#include "cli/patterns/delivery_process.h"
#include "kit/try.h"

namespace leasehold::cli {

Status CommandTarget::deliver(const OutboxMessage& message, const Delivery& delivery) {
  process::Command command{.argv = {"/bin/sh", "-c", command_}};
  const Token& token = delivery.token;
  command.environment = {{"LEASEHOLD_OUTBOX_ID", std::to_string(message.id)},
                         {"LEASEHOLD_OUTBOX_KEY", message.key},
                         {"LEASEHOLD_OUTBOX_TOPIC", message.topic},
                         {"LEASEHOLD_IDEMPOTENCY_KEY", message.idempotency_key},
                         {"LEASEHOLD_TOKEN", std::to_string(token.number.value())},
                         {"LEASEHOLD_LINEAGE", token.lineage.str()},
                         {"LEASEHOLD_REQUEST", token.request.hex()}};
  auto end = TRY(run_delivery(std::move(command), message.payload, delivery.context, signals_));
  const process::ExitStatus& status = end.status;
  if (status.success()) return {};
  const bool not_now = !status.known() || status == process::ExitStatus::exited(kNotNow);
  return fail(not_now ? ErrorCode::unavailable : ErrorCode::invalid,
              "the command " + status.describe());
}

}  // namespace leasehold::cli
