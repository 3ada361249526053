#include <unistd.h>

#include <fstream>

#include "cli/command/arguments.h"
#include "cli/command/output.h"
#include "cli/command/store_choice.h"
#include "cli/command/subcommand.h"
#include "cli/hold/session.h"

namespace leasehold::cli {
namespace {

// Whoever looks at the lock wants to know for whom it is held.
std::string parent_program() {
  std::ifstream file("/proc/" + std::to_string(getppid()) + "/comm");
  std::string name;
  std::getline(file, name);
  return name;
}

class Hold final : public Subcommand {
 public:
  void declare(Arguments& arguments) override;
  Ending execute() override;

 private:
  HoldOptions options_;
};

void Hold::declare(Arguments& arguments) {
  HoldOptions& o = options_;
  arguments.description(
      "Takes the lock NAME and holds it for the program that started this one, in whatever "
      "language that is written. Prints one line of JSON per event: held, uncertain, lost, "
      "released. Reads lines: 'beat' or an empty one is a heartbeat, 'release' gives the lock "
      "back, and so does the end of the input. Without a heartbeat in time the lease is kept, but "
      "no longer renewed, until one comes or the lease is over.");
  declare_lease(arguments, o, "the program", "host:pid:program");
  arguments.duration("--heartbeat", o.heartbeat,
                     "The longest time from one line of the program to the next", kTtls,
                     "a third of --ttl");
  arguments.flag("--no-heartbeat", o.no_heartbeat,
                 "Expect none: a program that hangs, or is stopped, keeps the lock");
  arguments.ends_with(ExitStatus::done, "the lock was given back, as the program asked for");
  arguments.also_ends_with(ExitStatus::wrong_input,
                           "a line that is no word; the lock was given back");
  arguments.also_ends_with(ExitStatus::outcome_unknown, "the lock was given back then");
  arguments.ends_with(ExitStatus::busy, "busy: somebody else holds the lock");
  arguments.ends_with(ExitStatus::lost, "the lease was lost");
  arguments.ends_with(ExitStatus::cancelled,
                      "a signal came: the lock was given back; or the input ended before the lock "
                      "was held");
  arguments.example("leasehold hold report --fenced --ttl 30s --wait 5m",
                    "what a program starts, with pipes as its input and output");
  arguments.example("sleep 60 | leasehold hold report --no-heartbeat",
                    "try it: held for a minute, or until Ctrl-C");
}

Ending Hold::execute() {
  auto lock = chosen_lock(options_.name);
  if (!lock) return report(lock.error());
  auto owner = chosen_owner(options_, parent_program());
  if (!owner) return report(owner.error());
  if (options_.heartbeat && options_.no_heartbeat) {
    return report(Error(ErrorCode::invalid, "--heartbeat and --no-heartbeat exclude each other"));
  }
  Signals signals;
  return HoldSession(options_, std::move(*lock), std::move(*owner), signals).go();
}

}  // namespace

SubcommandEntry hold_command() {
  return {"hold", "Hold a lock for a program in any language", make<Hold>};
}

}  // namespace leasehold::cli
