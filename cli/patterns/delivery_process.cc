#include "cli/patterns/delivery_process.h"

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

}  // namespace

Result<DeliveryEnd> run_delivery(process::Command command, const std::string& payload,
                                 const CallContext& context, const Signals& signals) {
  const process::Fd file = file_with(payload);
  if (file.get() < 0) return fail(ErrorCode::unavailable, "there is no memory for a message");
  command.in = process::FromFd{file.get()};
  command.placement = process::Placement::own_group;
  command.parent_death_signal = SIGKILL;
  command.signal_mask = signals.before();
  command.ignored_signals = signals.ignored_before();
  auto child = process::Child::start(command);
  if (!child) return fail(ErrorCode::unavailable, child.error().message);
  const waiting::Alarm never;
  waiting::CallWait wait(context, never);
  const bool ended = wait.until_readable(child->pidfd());
  // Before it is reaped, while the number of its group is still taken: what it left behind ends.
  child->signal_group(SIGKILL);
  const process::ExitStatus status = child->wait();
  if (!ended && wait.stopped()) {
    return fail(ErrorCode::cancelled, "the delivery was ended: the lease is lost");
  }
  if (!ended) return fail(ErrorCode::timeout, "the delivery took too long, and was ended");
  const bool piped = child->out().get() >= 0;
  return DeliveryEnd{status, piped ? process::read_all(child->out().get()) : ""};
}

}  // namespace leasehold::cli
