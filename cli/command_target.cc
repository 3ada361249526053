#include "command_target.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

namespace leasehold::cli {
namespace {

// A file in memory, so that a command that reads late or not at all blocks nobody.
process::Fd file_with(const std::string& payload) {
  process::Fd file(memfd_create("leasehold-message", MFD_CLOEXEC));
  if (file.get() < 0 || !process::write_all(file.get(), payload)) return process::Fd();
  if (lseek(file.get(), 0, SEEK_SET) != 0) return process::Fd();
  return file;
}

Status outcome(const process::ExitStatus& status) {
  if (status.success()) return {};
  const std::string said = "the command " + status.describe();
  if (!status.known() || status == process::ExitStatus::exited(kNotNow)) {
    return fail(ErrorCode::unavailable, said);
  }
  return fail(ErrorCode::invalid, said);
}

}  // namespace

process::Command CommandTarget::command_for(const OutboxMessage& message, const Token& token,
                                            int payload) const {
  process::Command command{.argv = {"/bin/sh", "-c", command_}};
  command.environment = {{"LEASEHOLD_OUTBOX_ID", std::to_string(message.id)},
                         {"LEASEHOLD_OUTBOX_KEY", message.key},
                         {"LEASEHOLD_OUTBOX_TOPIC", message.topic},
                         {"LEASEHOLD_IDEMPOTENCY_KEY", message.idempotency_key},
                         {"LEASEHOLD_TOKEN", std::to_string(token.number.value())},
                         {"LEASEHOLD_LINEAGE", token.lineage.str()},
                         {"LEASEHOLD_REQUEST", token.request.hex()}};
  command.in = process::FromFd{payload};
  command.placement = process::Placement::own_group;
  command.parent_death_signal = SIGKILL;
  command.signal_mask = signals_.before();
  command.ignored_signals = signals_.ignored_before();
  return command;
}

Status CommandTarget::deliver(const OutboxMessage& message, const Delivery& delivery) {
  const process::Fd payload = file_with(message.payload);
  if (payload.get() < 0) return fail(ErrorCode::unavailable, "there is no memory for a message");
  auto child = process::Child::start(command_for(message, delivery.token, payload.get()));
  if (!child) return fail(ErrorCode::unavailable, child.error().message);
  leasehold::detail::CallWait wait(delivery.context, never_);
  const bool ended = wait.until_readable(child->pidfd());
  // Before it is reaped, while the number of its group is still taken: what it left behind ends.
  child->signal_group(SIGKILL);
  const process::ExitStatus status = child->wait();
  if (ended) return outcome(status);
  if (wait.stopped()) return fail(ErrorCode::cancelled, "the command was ended: the lease is lost");
  return fail(ErrorCode::timeout, "the command took too long, and was ended");
}

}  // namespace leasehold::cli
