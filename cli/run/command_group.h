// A command in a process group of its own, from its start to the end of the last one in it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command/exit_status.h"
#include "cli/command/signals.h"
#include "leasehold/process/child.h"

namespace leasehold::cli {

// Why a command was not started, and what to exit with.
struct NotStarted {
  std::string message;
  Ending ending;
};

// How long before a lease's deadline SIGKILL goes out: time for the kernel to carry it out.
Millis kill_margin(Millis ttl);

class CommandGroup {
 public:
  explicit CommandGroup(const Signals& signals) : signals_(signals) {}

  // With the signals as this program found them. The kernel kills the command if this thread ends.
  [[nodiscard]] tl::expected<void, NotStarted> start(process::Command command);
  process::Child& child() { return *child_; }

  // SIGTERM or SIGKILL to the whole group, each at most once, and says why.
  void end(int number, const std::string& why);
  bool termed() const { return termed_; }
  bool killed() const { return killed_; }

  // A signal that came to this program and is not its own.
  void pass_on(int number);

  // Stops this program and those around it, as Ctrl-Z would have without a process group between:
  // the shell that waits for them gets its prompt back. True if nobody stopped it, so that nobody
  // will continue the command.
  static bool stop_around();

  // When the command has ended: ends what it left in its group, with SIGKILL at `kill_at` or as
  // soon as `hurry` is readable, and says so. Nobody is left then.
  process::ExitStatus end_rest(process::Deadline kill_at, int hurry = -1);

  // A note. A stderr that nobody reads must not keep the command alive, so what it has no room for
  // is told at the end.
  void tell(std::string text);

 private:
  void tell_rest();

  const Signals& signals_;
  std::optional<process::Child> child_;
  std::vector<std::string> untold_;
  bool termed_ = false;
  bool killed_ = false;
};

}  // namespace leasehold::cli
