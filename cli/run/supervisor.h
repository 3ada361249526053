// Watches over a command that runs under a lease.
#pragma once

#include <functional>
#include <optional>

#include "cli/command/events.h"
#include "cli/command/signals.h"
#include "cli/run/command_group.h"
#include "leasehold/lease.h"
#include "leasehold/process/terminal.h"

namespace leasehold::cli {

enum class OnLost { kill, term, ignore };

struct Watch {
  OnLost on_lost = OnLost::kill;
  Millis grace{0};  // from SIGTERM to SIGKILL; at most half the lease's time to live
  // Why the lease is not renewed, if that is known.
  std::function<std::optional<Error>()> trouble{};
  bool tell_late_renewals = false;
};

struct CommandEnd {
  process::ExitStatus status;
  bool for_lease = false;     // ended from here, because the lease was lost or about to be
  bool had_terminal = false;  // it was in the foreground: Ctrl-C went to it alone
  bool asked_to_end = false;  // a signal that asks to end was passed on to it
};

// One command, from its start to the end of its process group. Uses poll on a few descriptors
// (process, signals, timers, loss) and, while the command runs, never asks again and again.
class Supervisor {
 public:
  // `lease`: null if the command holds none; then nothing is ended for it.
  Supervisor(const Lease* lease, Signals& signals, Watch watch);

  // Runs the command in a process group of its own, which gets the terminal if this program has it
  // in the foreground. Returns when the command has ended and nobody is left in its group. Does not
  // start it if the lease is lost, or SIGTERM would be due at once.
  //
  // At deadline - grace, if the lease was not renewed: SIGTERM to the whole group. Shortly before
  // the deadline, or at once if the lease is lost: SIGKILL to the whole group.
  [[nodiscard]] tl::expected<CommandEnd, NotStarted> run(process::Command command);

 private:
  void watch_until_end();
  void check_lease();
  void check_renewals();
  void arm_for_late_renewal();
  void end_for_lease(int number, const char* why);
  void arm();
  void on_signal(int number);
  void on_child_change();
  void on_continue();
  process::ExitStatus end_rest_of_group();
  BootTime late_time() const;
  BootTime term_time() const;
  BootTime kill_time() const;

  const Lease* lease_;
  Signals& signals_;
  const Watch watch_;
  const Millis kill_margin_;
  BootTimer timer_;
  BootTimer late_timer_;
  Flag lost_;
  std::optional<process::Terminal> terminal_;
  CommandGroup group_;
  bool terminal_given_ = false;
  bool loss_told_ = false;
  bool late_told_ = false;
  bool asked_to_end_ = false;
};

}  // namespace leasehold::cli
