#include "cli/run/supervisor.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <stop_token>
#include <string>
#include <utility>

#include "cli/command/duration.h"
#include "cli/command/output.h"
#include "leasehold/process/group.h"

namespace leasehold::cli {
namespace {

constexpr const char* kTakenAway =
    "the lease was lost: the store ended it before its time, as 'leasehold release --force' does";

bool both_ends_on_terminal() {
  return isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1;
}

}  // namespace

Supervisor::Supervisor(const Lease* lease, Signals& signals, Watch watch)
    : lease_(lease),
      signals_(signals),
      watch_(watch),
      kill_margin_(lease ? kill_margin(lease->ttl()) : Millis(0)),
      terminal_(process::Terminal::controlling()),
      group_(signals) {}

tl::expected<CommandEnd, NotStarted> Supervisor::run(process::Command command) {
  // In a pipeline (`leasehold run … | less`) the terminal is not given away before the command
  // reads from it: the other programs of the pipeline may need it.
  terminal_given_ = terminal_ && terminal_->is_foreground() && both_ends_on_terminal();
  if (terminal_given_) command.terminal = terminal_->fd();
  // Here, because everything since the grant may have taken long.
  const Status held = lease_ ? lease_->require(std::max(watch_.grace, kill_margin_)) : Status();
  if (!held) {
    return tl::unexpected(
        NotStarted{"the command was not started: " + held.error().message, ExitStatus::lost});
  }
  if (auto started = group_.start(std::move(command)); !started) {
    if (terminal_given_) terminal_->give_to(getpgrp());
    return tl::unexpected(std::move(started.error()));
  }
  const std::stop_callback told(lease_ ? lease_->lost() : std::stop_token(),
                                [this] { lost_.raise(); });
  watch_until_end();
  if (terminal_) terminal_->take_back_from(group_.child().pid());
  if (terminal_given_ && group_.killed()) terminal_->restore_modes();
  const process::ExitStatus status = end_rest_of_group();
  return CommandEnd{status, group_.termed() || group_.killed(), terminal_given_, asked_to_end_};
}

void Supervisor::watch_until_end() {
  arm();
  arm_for_late_renewal();
  for (;;) {
    pollfd events[] = {{group_.child().pidfd(), POLLIN, 0},
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
  const bool nothing_to_come =
      !lease_ || group_.killed() || loss_told_ || (group_.termed() && !kills);
  if (nothing_to_come || watch_.on_lost == OnLost::ignore) return timer_.clear();
  if (group_.termed()) return timer_.set(kill_time());
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
      group_.tell("the lease on " + in_quotes(lease_->lock().str()) +
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
    group_.tell(late ? "the lease on " + lock + " has not been renewed yet; it lasts " + left +
                           " more" + (trouble ? ": " + text_of(*trouble) : "")
                     : "the lease on " + lock + " was renewed late; it lasts " + left + " more");
    late_told_ = late;
  }
  arm_for_late_renewal();
}

void Supervisor::end_for_lease(int number, const char* why) {
  const auto trouble = watch_.trouble();
  group_.end(number, std::string(why) + ", lock " + in_quotes(lease_->lock().str()) +
                         (trouble ? "; " + text_of(*trouble) : ""));
}

void Supervisor::on_signal(int number) {
  switch (number) {
    case SIGCHLD:
      return on_child_change();
    case SIGCONT:
      return on_continue();
    default:
      asked_to_end_ = asked_to_end_ || Signals::asks_to_end(number);
      group_.pass_on(number);
  }
}

void Supervisor::on_child_change() {
  process::Child& child = group_.child();
  process::reap_all_but(child.pid());
  const auto stopped_by = child.take_stop();
  if (!stopped_by || !terminal_) return;
  const bool wants_terminal = *stopped_by == SIGTTIN || *stopped_by == SIGTTOU;
  if (wants_terminal && terminal_->is_foreground()) {
    terminal_given_ = terminal_->give_to(child.pid());
    child.signal_group(SIGCONT);
    return;
  }
  if (!wants_terminal && *stopped_by != SIGTSTP) return;
  if (CommandGroup::stop_around()) on_continue();
}

void Supervisor::on_continue() {
  check_lease();
  if (group_.killed()) return;
  if (terminal_given_ && terminal_->is_foreground()) terminal_->give_to(group_.child().pid());
  group_.pass_on(SIGCONT);
}

// Work that goes on after the lock is given back is not protected by it.
process::ExitStatus Supervisor::end_rest_of_group() {
  const bool lost = lease_ && lease_->state() == LeaseState::lost;
  const BootClock::duration grace = watch_.grace;
  const auto patience = lease_ ? std::min(grace, kill_time() - BootClock::now()) : grace;
  return group_.end_rest(
      process::within(lost || group_.killed() ? BootClock::duration::zero() : patience),
      lost_.fd());
}

}  // namespace leasehold::cli
