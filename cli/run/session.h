// A command under a lease: from taking the lock to giving it back.
#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "cli/command/lease_options.h"
#include "cli/command/output.h"
#include "cli/command/signals.h"
#include "cli/command/waiting.h"
#include "cli/run/supervisor.h"

namespace leasehold::cli {

class Arguments;

// Which ends are stored under the key of --once.
enum class OnceKeeps { success, any };

struct RunOptions : LeaseOptions {
  Millis at_least{0};
  OnLost on_lost = OnLost::kill;
  std::optional<Millis> grace;
  std::optional<std::string> once;
  OnceKeeps once_keeps = OnceKeeps::success;
  int busy_status = static_cast<int>(ExitStatus::busy);
  bool verbose = false;
  std::vector<std::string> command;
};

struct Grant : TakenLease {
  BootTime since;
};

// Declares COMMAND after the dashes.
void declare_command(Arguments& arguments, RunOptions& into);
// Declares --grace, and what the command may end with besides what it ends with itself.
void declare_grace(Arguments& arguments, RunOptions& into);
void declare_ends_of_command(Arguments& arguments);
// `invalid` if --grace is too long.
[[nodiscard]] Status check_grace(const RunOptions& options);
// --grace, or a part of what the store gave; at most half of that.
Millis grace_of(const std::optional<Millis>& chosen, Millis ttl);

// What a command under this lock finds: LEASEHOLD_LOCK and LEASEHOLD_STORE, and none of the
// variables that tell of a lease. What is added for one of them counts.
using Environment = std::vector<std::pair<std::string, std::optional<std::string>>>;
Environment environment_under(const LockName& lock, const Client& client);

// A signal came before a command was started. Says so.
Ending not_started();
// The lock was not to be had. Says so, unless the user wants silence.
Ending not_taken(const RunOptions& options, const Error& error);

// The command, in that environment.
[[nodiscard]] process::Command command_under(const RunOptions& options, const LockName& lock,
                                             const Client& client);

// Returns at that time, or if `lost` is requested or a signal asks to end.
void stay(BootTime until, std::stop_token lost, Signals& signals);

// The whole run, from taking the lock to giving it back.
class RunSession {
 public:
  RunSession(const RunOptions& options, LockName lock, Client client, Signals& signals)
      : options_(options), lock_(std::move(lock)), client_(std::move(client)), signals_(signals) {}

  // Takes the lock and works under it.
  Ending go();

  // The parts of it. take() has said nothing if it fails, and work() gives the lock back.
  Result<Grant> take();
  Ending work(Grant& grant);

  // A signal that asks to end has come, before the command or to it.
  bool asked_to_end() const { return asked_to_end_; }
  // The command was started and has ended by itself, not for its lease.
  bool command_ended() const { return command_ended_; }
  // Ctrl-C went to the command alone: those around the wrapper have not heard it yet.
  bool pass_interrupt_on() const { return pass_interrupt_on_; }

 private:
  process::Command command_for(const Grant& grant) const;
  Ending supervise(Grant& grant);
  Ending after_command(Grant& grant, const CommandEnd& end);
  std::optional<Ending> replay(Grant& grant);
  std::string once_command(const std::string& what) const;
  Status remember(const Grant& grant, int status);
  Ending give_back(Grant& grant, Ending ending);
  Result<ReleaseOutcome> release(Grant& grant);
  void say(const std::string& text) const {
    if (options_.verbose) note_now(text);
  }

  const RunOptions& options_;
  const LockName lock_;
  Client client_;
  Signals& signals_;
  std::optional<Waiting> waiting_;
  bool asked_to_end_ = false;
  bool command_ended_ = false;
  Millis kept_for_{0};  // given back, but nobody gets it for so long
  bool pass_interrupt_on_ = false;
};

}  // namespace leasehold::cli
