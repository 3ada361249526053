#include "cli/run/session.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>

#include "cli/command/arguments.h"
#include "cli/command/duration.h"
#include "cli/command/once_run.h"
#include "kit/try.h"

namespace leasehold::cli {
namespace {

using namespace std::chrono_literals;

// A sixth of the time to live: the store may then be away for half of it without harm, since a
// renewal is due after a third.
Millis default_grace(Millis ttl) {
  return std::min<Millis>(ttl / 6, 10s);
}

}  // namespace

Millis grace_of(const std::optional<Millis>& chosen, Millis ttl) {
  return std::min(chosen.value_or(default_grace(ttl)), ttl / 2);
}

Environment environment_under(const LockName& lock, const Client& client) {
  Environment names{{"LEASEHOLD_LOCK", lock.str()}, {"LEASEHOLD_STORE", client.store().address}};
  // Else those of an outer run would stay, and belong to another lock.
  for (const char* other :
       {"LEASEHOLD_REQUEST", "LEASEHOLD_TOKEN", "LEASEHOLD_LINEAGE", "LEASEHOLD_SLOT"}) {
    names.emplace_back(other, std::nullopt);
  }
  return names;
}

void declare_command(Arguments& arguments, RunOptions& into) {
  arguments.rest_after_dashes("COMMAND", into.command, "The command and its arguments");
}

void declare_grace(Arguments& arguments, RunOptions& into) {
  arguments.duration("--grace", into.grace, "From SIGTERM to SIGKILL; at most half of --ttl",
                     kAnyDuration, "a sixth of it and at most 10s");
}

void declare_ends_of_command(Arguments& arguments) {
  arguments.ends_with(ExitStatus::not_executable, "the command could not be executed");
  arguments.ends_with(ExitStatus::not_found, "the command was not found");
  arguments.ends_with(ExitStatus::by_signal, "the command was ended by signal n");
  arguments.ends_with(
      ExitStatus::cancelled,
      "a signal came before the command was started, as while waiting for the lock");
}

Status check_grace(const RunOptions& options) {
  if (!options.grace || *options.grace <= options.ttl / 2) return {};
  return fail(ErrorCode::invalid, "--grace: " + format_duration(*options.grace) +
                                      " is more than half of the ttl of " +
                                      format_duration(options.ttl));
}

Ending not_started() {
  note_now("a signal came before the command was started");
  return ExitStatus::cancelled;
}

Ending not_taken(const RunOptions& options, const Error& error) {
  if (exit_status(error.code) != ExitStatus::busy) return report(error);
  // A job skipped because it is running already should not make cron send mail.
  if (options.busy_status != 0 || options.verbose) report(error);
  return Ending::passed_on(options.busy_status);
}

process::Command command_under(const RunOptions& options, const LockName& lock,
                               const Client& client) {
  return {.argv = options.command, .environment = environment_under(lock, client)};
}

void stay(BootTime until, std::stop_token lost, Signals& signals) {
  BootTimer timer;
  Flag over;
  timer.set(until);
  const std::stop_callback told(std::move(lost), [&] { over.raise(); });
  for (;;) {
    pollfd events[] = {{timer.fd(), POLLIN, 0}, {over.fd(), POLLIN, 0}, {signals.fd(), POLLIN, 0}};
    if (poll(events, std::size(events), -1) < 0) continue;
    if (events[0].revents != 0 || events[1].revents != 0) return;
    if (signals.take_end_request()) return;
  }
}

Ending RunSession::go() {
  auto grant = take();
  if (!grant && !asked_to_end_) return not_taken(options_, grant.error());
  if (asked_to_end_) return not_started();
  return work(*grant);
}

Ending RunSession::work(Grant& grant) {
  if (signals_.take_end_request()) {
    asked_to_end_ = true;
    return not_started();
  }
  say("took " + in_quotes(lock_.str()) + " for " + format_duration(grant.lease.ttl()) +
      (grant.token ? ", token " + std::to_string(grant.token->number.value()) : "") +
      (grant.lease.slot() ? ", slot " + std::to_string(grant.lease.slot()->number) : ""));
  if (options_.once) {
    if (const auto ending = replay(grant)) return *ending;
  }
  return supervise(grant);
}

Result<Grant> RunSession::take() {
  const bool tell = options_.wait > 0ms && (options_.verbose || isatty(STDERR_FILENO) == 1);
  waiting_.emplace(signals_, tell ? std::optional(Waiting::For{client_, lock_}) : std::nullopt);
  auto lease = take_lease(client_, lock_, options_, waiting_->stop());
  asked_to_end_ = waiting_->end();
  if (tell) waiting_.reset();  // so that its line does not come late
  if (!lease) return fail(std::move(lease.error()));
  return Grant{std::move(*lease), BootClock::now()};
}

process::Command RunSession::command_for(const Grant& grant) const {
  process::Command command = command_under(options_, lock_, client_);
  command.environment.emplace_back("LEASEHOLD_REQUEST", grant.lease.request().hex());
  if (const auto slot = grant.lease.slot()) {
    command.environment.emplace_back("LEASEHOLD_SLOT", std::to_string(slot->number));
  }
  if (grant.token) {
    command.environment.emplace_back("LEASEHOLD_TOKEN",
                                     std::to_string(grant.token->number.value()));
    command.environment.emplace_back("LEASEHOLD_LINEAGE", grant.token->lineage.str());
  }
  return command;
}

Ending RunSession::supervise(Grant& grant) {
  // A store may give less than was asked for.
  const Watch watch{options_.on_lost, grace_of(options_.grace, grant.lease.ttl()),
                    [this] { return client_.renewal_error(); }, options_.verbose};
  Supervisor supervisor(&grant.lease, signals_, watch);
  const auto end = supervisor.run(command_for(grant));
  if (end) return after_command(grant, *end);
  note_now(end.error().message);
  if (const auto released = grant.lease.release(); !released) report(released.error());
  return end.error().ending;
}

Ending RunSession::after_command(Grant& grant, const CommandEnd& end) {
  asked_to_end_ = end.asked_to_end;
  if (end.for_lease) return ExitStatus::lost;
  command_ended_ = true;
  pass_interrupt_on_ = end.had_terminal && end.status == process::ExitStatus::signalled(SIGINT);
  asked_to_end_ = asked_to_end_ || pass_interrupt_on_;
  if (!end.status.known()) {
    note_now("the command has ended, but the system did not tell how" +
             std::string(options_.once ? "; nothing was stored, it will run again" : ""));
    return give_back(grant, ExitStatus::internal);
  }
  const int status = end.status.shell_status();
  Ending ending = Ending::passed_on(status);
  const bool counts = status == 0 || options_.once_keeps == OnceKeeps::any;
  if (options_.once && counts && !end.status.by_signal()) {
    if (const auto done = remember(grant, status); !done) {
      ending = report_now(done.error());
      const bool unknown = done.error().code == ErrorCode::outcome_unknown;
      note_now("the command " + end.status.describe() + ", but that " +
               (unknown ? "may not be" : "was not") + " stored under the key " +
               in_quotes(*options_.once) +
               (unknown ? ": it may run again" : ": it will run again"));
    }
  }
  return give_back(grant, ending);
}

// Whoever reads it may stand in another folder, and have another LEASEHOLD_STORE.
std::string RunSession::once_command(const std::string& what) const {
  return "leasehold once " + what + " --store " + in_quotes(client_.store().address) + " " +
         operands({lock_.str(), *options_.once});
}

std::optional<Ending> RunSession::replay(Grant& grant) {
  const auto give_back_and = [&](Ending ending) {
    if (const auto released = grant.lease.release(); !released) report(released.error());
    return ending;
  };
  const auto known = client_.recall(lock_, *options_.once);
  if (!known) return give_back_and(report_now(known.error()));
  if (!*known) return std::nullopt;
  const auto before = run_in(**known);
  if (!before || before->command != options_.command) {
    return give_back_and(
        report_now(Error(ErrorCode::invalid,
                         "--once: the key " + in_quotes(*options_.once) +
                             " was used with another command under lock " + in_quotes(lock_.str()) +
                             "; nothing was run. See " + once_command("show"))));
  }
  const std::string done_before = in_quotes(*options_.once) +
                                  " was done before, with exit status " +
                                  std::to_string(before->status);
  if (before->status == 0) {
    say(done_before);
  } else {
    note_now(done_before + ", and was not run again; to run it again: " + once_command("forget"));
  }
  return give_back_and(Ending::passed_on(before->status));
}

Status RunSession::remember(const Grant& grant, int status) {
  return client_.record(grant.lease, *options_.once, record_of({options_.command, status}));
}

Ending RunSession::give_back(Grant& grant, Ending ending) {
  const auto outcome = release(grant);
  if (!outcome) {
    report_not_released(grant.lease, outcome.error(), kept_for_);
    return ending;
  }
  if (*outcome == ReleaseOutcome::released) {
    if (kept_for_ == 0ms) say("gave " + in_quotes(lock_.str()) + " back");
    return ending;
  }
  // Also if only the store was slow to take it back: an operator may have ended it before.
  note("the lease on " + in_quotes(lock_.str()) +
       " was over before it could be given back: somebody else may have worked meanwhile");
  return options_.on_lost == OnLost::ignore ? ending : ExitStatus::lost;
}

Result<ReleaseOutcome> RunSession::release(Grant& grant) {
  const BootTime until = grant.since + options_.at_least;
  const auto rest = std::chrono::ceil<Millis>(until - BootClock::now());
  if (rest <= 0ms) return grant.lease.release();
  if (client_.store().keeps_after_release) {
    say("keeping " + in_quotes(lock_.str()) + " for another " + format_duration(rest));
    kept_for_ = rest;
    return grant.lease.release_after(rest);
  }
  // For stores that keep a lock only as long as somebody renews it.
  say("staying to keep " + in_quotes(lock_.str()));
  stay(until, grant.lease.lost(), signals_);
  return grant.lease.release();
}

}  // namespace leasehold::cli
