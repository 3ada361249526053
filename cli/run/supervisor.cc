#include "cli/run/supervisor.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <stop_token>
#include <utility>

#include "cli/command/duration.h"
#include "cli/command/output.h"
#include "leasehold/process/group.h"

namespace leasehold::cli {
namespace {

using namespace std::chrono_literals;

// How long before the deadline SIGKILL goes out: time for the kernel to carry it out.
Millis kill_margin(Millis ttl) {
  return std::clamp<Millis>(ttl / 20, 5ms, 500ms);
}

constexpr const char* kTakenAway =
    "the lease was lost: the store ended it before its time, as 'leasehold release --force' does";

bool both_ends_on_terminal() {
  return isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1;
}

bool continue_is_pending() {
  sigset_t pending;
  return sigpending(&pending) == 0 && sigismember(&pending, SIGCONT) == 1;
}

}  // namespace

Supervisor::Supervisor(const Lease* lease, Signals& signals, Watch watch)
    : lease_(lease),
      signals_(signals),
      watch_(watch),
      kill_margin_(lease ? kill_margin(lease->ttl()) : 0ms),
      terminal_(process::Terminal::controlling()) {}

tl::expected<CommandEnd, NotStarted> Supervisor::run(process::Command command) {
  // In a pipeline (`leasehold run … | less`) the terminal is not given away before the command
  // reads from it: the other programs of the pipeline may need it.
  terminal_given_ = terminal_ && terminal_->is_foreground() && both_ends_on_terminal();
  command.placement = process::Placement::own_group;
  if (terminal_given_) command.terminal = terminal_->fd();
  command.parent_death_signal = SIGKILL;
  command.signal_mask = signals_.before();
  command.ignored_signals = signals_.ignored_before();

  process::adopt_orphans();
  // Here, because everything since the grant may have taken long.
  const Status held = lease_ ? lease_->require(std::max(watch_.grace, kill_margin_)) : Status();
  if (!held) {
    return tl::unexpected(
        NotStarted{"the command was not started: " + held.error().message, ExitStatus::lost});
  }
  auto started = process::Child::start(command);
  if (!started) {
    if (terminal_given_) terminal_->give_to(getpgrp());
    return tl::unexpected(
        NotStarted{started.error().message, Ending::passed_on(started.error().shell_status())});
  }
  child_ = std::move(*started);
  const std::stop_callback told(lease_ ? lease_->lost() : std::stop_token(),
                                [this] { lost_.raise(); });
  watch_until_end();
  if (terminal_) terminal_->take_back_from(child_->pid());
  if (terminal_given_ && killed_) terminal_->restore_modes();
  end_rest_of_group();
  const process::ExitStatus status = child_->wait();
  tell_rest();
  return CommandEnd{status, termed_ || killed_, terminal_given_, asked_to_end_};
}

void Supervisor::watch_until_end() {
  arm();
  arm_for_late_renewal();
  for (;;) {
    pollfd events[] = {{child_->pidfd(), POLLIN, 0},
                       {signals_.fd(), POLLIN, 0},
                       {timer_.fd(), POLLIN, 0},
                       {lost_.fd(), POLLIN, 0},
                       {late_timer_.fd(), POLLIN, 0}};
    if (poll(events, std::size(events), -1) < 0) continue;  // EINTR
    if (events[2].revents != 0 || events[3].revents != 0) {
      lost_.clear();
      check_lease();
    }
    if (events[4].revents != 0) check_renewals();
    if (events[0].revents != 0) return;
    while (const auto number = signals_.next()) on_signal(*number);
  }
}

BootTime Supervisor::kill_time() const {
  return lease_->deadline() - kill_margin_;
}

// A renewal is due after a third of the TTL.
BootTime Supervisor::late_time() const {
  return lease_->deadline() - lease_->ttl() / 2;
}

BootTime Supervisor::term_time() const {
  return lease_->deadline() - watch_.grace;
}

void Supervisor::arm() {
  const bool kills = watch_.on_lost == OnLost::kill;
  const bool nothing_to_come = !lease_ || killed_ || loss_told_ || (termed_ && !kills);
  if (nothing_to_come || watch_.on_lost == OnLost::ignore) return timer_.clear();
  if (termed_) return timer_.set(kill_time());
  timer_.set(kills ? std::min(term_time(), kill_time()) : term_time());
}

// Called when something may have changed; a renewal in time makes it a no-op.
void Supervisor::check_lease() {
  if (!lease_) return;
  const bool lost = lease_->state() == LeaseState::lost;
  const BootTime now = BootClock::now();
  if (lost && !loss_told_) {
    loss_told_ = true;
    const char* why = now < lease_->deadline() ? kTakenAway : "the lease was lost";
    if (watch_.on_lost == OnLost::kill) end_for_lease(SIGKILL, why);
    if (watch_.on_lost == OnLost::term) end_for_lease(SIGTERM, why);
    if (watch_.on_lost == OnLost::ignore) {
      tell("the lease on " + in_quotes(lease_->lock().str()) +
           " was lost; the command goes on (--on-lost ignore)");
    }
  } else if (!lost && watch_.on_lost != OnLost::ignore) {
    if (watch_.on_lost == OnLost::kill && now >= kill_time()) {
      end_for_lease(SIGKILL, "the lease ends, and could not be renewed");
    } else if (now >= term_time()) {
      end_for_lease(SIGTERM, "the lease could not be renewed");
    }
  }
  arm();
}

void Supervisor::arm_for_late_renewal() {
  const bool told = lease_ && watch_.tell_late_renewals;
  if (!told || lease_->state() == LeaseState::lost) return late_timer_.clear();
  late_timer_.set(late_told_ ? BootClock::now() + lease_->ttl() / 10 : late_time());
}

void Supervisor::check_renewals() {
  const bool late = BootClock::now() >= late_time();
  if (lease_->state() != LeaseState::lost && late != late_told_) {
    const auto trouble = watch_.trouble();
    const std::string lock = in_quotes(lease_->lock().str());
    const std::string left = format_duration(std::chrono::floor<Millis>(lease_->remaining()));
    tell(late ? "the lease on " + lock + " has not been renewed yet; it lasts " + left + " more" +
                    (trouble ? ": " + text_of(*trouble) : "")
              : "the lease on " + lock + " was renewed late; it lasts " + left + " more");
    late_told_ = late;
  }
  arm_for_late_renewal();
}

void Supervisor::end_for_lease(int number, const char* why) {
  bool& done = number == SIGKILL ? killed_ : termed_;
  if (done) return;
  done = true;
  child_->signal_group(number);
  if (number != SIGKILL) child_->signal_group(SIGCONT);  // a stopped command would not hear it
  const auto trouble = watch_.trouble();
  tell("ending the command (" + std::string(sigabbrev_np(number)) + "): " + why + ", lock " +
       in_quotes(lease_->lock().str()) + (trouble ? "; " + text_of(*trouble) : ""));
}

void Supervisor::on_signal(int number) {
  switch (number) {
    case SIGCHLD:
      return on_child_change();
    case SIGCONT:
      return on_continue();
    case SIGPIPE:
    case SIGTTOU:
    case SIGTTIN:
      return;  // the wrapper's own
    default:
      asked_to_end_ = asked_to_end_ || Signals::asks_to_end(number);
      child_->signal_group(number);
  }
}

void Supervisor::on_child_change() {
  process::reap_all_but(child_->pid());
  const auto stopped_by = child_->take_stop();
  if (!stopped_by || !terminal_) return;
  const bool wants_terminal = *stopped_by == SIGTTIN || *stopped_by == SIGTTOU;
  if (wants_terminal && terminal_->is_foreground()) {
    terminal_given_ = terminal_->give_to(child_->pid());
    child_->signal_group(SIGCONT);
    return;
  }
  if (wants_terminal || *stopped_by == SIGTSTP) stop_with_command();
}

// Stops the wrapper and those around it, as Ctrl-Z would have without a process group between:
// the shell that waits for them gets its prompt back.
void Supervisor::stop_with_command() {
  kill(0, SIGTSTP);
  { const SignalUnblocked now_stop(SIGTSTP); }
  // The kernel does not stop a group without a shell above it; nobody would continue the command.
  if (!continue_is_pending()) on_continue();
}

void Supervisor::on_continue() {
  check_lease();
  if (killed_) return;
  if (terminal_given_ && terminal_->is_foreground()) terminal_->give_to(child_->pid());
  child_->signal_group(SIGCONT);
}

// Work that goes on after the lock is given back is not protected by it.
void Supervisor::end_rest_of_group() {
  const bool lost = lease_ && lease_->state() == LeaseState::lost;
  const BootClock::duration grace = watch_.grace;
  const auto patience = lease_ ? std::min(grace, kill_time() - BootClock::now()) : grace;
  const auto end = process::end_group(
      *child_, process::within(lost || killed_ ? BootClock::duration::zero() : patience),
      lost_.fd());
  if (end.found == 0 || killed_) return;
  tell("ended " + std::to_string(end.found) + " process" + (end.found == 1 ? "" : "es") +
       " that the command left running" + (end.killed ? " (with SIGKILL)" : ""));
}

// A stderr that nobody reads must not keep the command alive.
void Supervisor::tell(std::string text) {
  if (!untold_.empty() || !note_now(text)) untold_.push_back(std::move(text));
}

void Supervisor::tell_rest() {
  for (const std::string& text : std::exchange(untold_, {})) {
    if (!note_soon(text)) return;
  }
}

}  // namespace leasehold::cli
