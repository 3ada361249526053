#include "cli/run/command_group.h"

#include <string.h>

#include <algorithm>
#include <utility>

#include "cli/command/output.h"
#include "leasehold/process/group.h"

namespace leasehold::cli {
namespace {

using namespace std::chrono_literals;

bool continue_is_pending() {
  sigset_t pending;
  return sigpending(&pending) == 0 && sigismember(&pending, SIGCONT) == 1;
}

}  // namespace

Millis kill_margin(Millis ttl) {
  return std::clamp<Millis>(ttl / 20, 5ms, 500ms);
}

tl::expected<void, NotStarted> CommandGroup::start(process::Command command) {
  command.placement = process::Placement::own_group;
  command.parent_death_signal = SIGKILL;
  command.signal_mask = signals_.before();
  command.ignored_signals = signals_.ignored_before();
  process::adopt_orphans();
  auto started = process::Child::start(command);
  if (!started) {
    return tl::unexpected(
        NotStarted{started.error().message, Ending::passed_on(started.error().shell_status())});
  }
  child_ = std::move(*started);
  return {};
}

void CommandGroup::end(int number, const std::string& why) {
  bool& done = number == SIGKILL ? killed_ : termed_;
  if (done) return;
  done = true;
  child_->signal_group(number);
  if (number != SIGKILL) child_->signal_group(SIGCONT);  // a stopped command would not hear it
  tell("ending the command (" + std::string(sigabbrev_np(number)) + "): " + why);
}

void CommandGroup::pass_on(int number) {
  const bool of_this_program = number == SIGPIPE || number == SIGTTOU || number == SIGTTIN;
  if (!of_this_program) child_->signal_group(number);
}

bool CommandGroup::stop_around() {
  kill(0, SIGTSTP);
  { const SignalUnblocked now_stop(SIGTSTP); }
  // The kernel does not stop a group without a shell above it.
  return !continue_is_pending();
}

process::ExitStatus CommandGroup::end_rest(process::Deadline kill_at, int hurry) {
  const auto end = process::end_group(*child_, kill_at, hurry);
  if (end.found > 0 && !killed_) {
    tell("ended " + std::to_string(end.found) + " process" + (end.found == 1 ? "" : "es") +
         " that the command left running" + (end.killed ? " (with SIGKILL)" : ""));
  }
  const process::ExitStatus status = child_->wait();
  tell_rest();
  return status;
}

void CommandGroup::tell(std::string text) {
  if (!untold_.empty() || !note_now(text)) untold_.push_back(std::move(text));
}

void CommandGroup::tell_rest() {
  for (const std::string& text : std::exchange(untold_, {})) {
    if (!note_soon(text)) return;
  }
}

}  // namespace leasehold::cli
