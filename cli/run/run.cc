#include <poll.h>
#include <unistd.h>

#include <algorithm>

#include "cli/command/arguments.h"
#include "cli/command/duration.h"
#include "cli/command/lease_options.h"
#include "cli/command/once_run.h"
#include "cli/command/output.h"
#include "cli/command/signals.h"
#include "cli/command/store_choice.h"
#include "cli/command/subcommand.h"
#include "cli/command/waiting.h"
#include "cli/run/supervisor.h"
#include "kit/try.h"

namespace leasehold::cli {
namespace {

using namespace std::chrono_literals;

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

// A sixth of the time to live: the store may then be away for half of it without harm, since a
// renewal is due after a third.
Millis default_grace(Millis ttl) {
  return std::min<Millis>(ttl / 6, 10s);
}

constexpr Range<std::int64_t> kStatuses{0, 255};

// The whole run, from taking the lock to giving it back.
class RunSession {
 public:
  RunSession(const RunOptions& options, LockName lock, Client client, Signals& signals)
      : options_(options), lock_(std::move(lock)), client_(std::move(client)), signals_(signals) {}

  Ending go();

  // Ctrl-C went to the command alone: those around the wrapper have not heard it yet.
  bool pass_interrupt_on() const { return pass_interrupt_on_; }

 private:
  Result<Grant> take();
  Ending not_taken(const Error& error) const;
  process::Command command_for(const Grant& grant) const;
  Ending supervise(Grant& grant);
  Ending after_command(Grant& grant, const CommandEnd& end);
  std::optional<Ending> replay(Grant& grant);
  std::string once_command(const std::string& what) const;
  Status remember(const Grant& grant, int status);
  Ending give_back(Grant& grant, Ending ending);
  Result<ReleaseOutcome> release(Grant& grant);
  void stay(const Grant& grant, BootTime until);
  void say(const std::string& text) const {
    if (options_.verbose) note_now(text);
  }

  const RunOptions& options_;
  const LockName lock_;
  Client client_;
  Signals& signals_;
  std::optional<Waiting> waiting_;
  bool asked_to_end_ = false;
  Millis kept_for_{0};  // given back, but nobody gets it for so long
  bool pass_interrupt_on_ = false;
};

Ending not_started() {
  note_now("a signal came before the command was started");
  return ExitStatus::cancelled;
}

Ending RunSession::go() {
  auto grant = take();
  if (!grant && !asked_to_end_) return not_taken(grant.error());
  if (asked_to_end_ || signals_.take_end_request()) return not_started();
  say("took " + in_quotes(lock_.str()) + " for " + format_duration(grant->lease.ttl()) +
      (grant->token ? ", token " + std::to_string(grant->token->number.value()) : "") +
      (grant->lease.slot() ? ", slot " + std::to_string(grant->lease.slot()->number) : ""));
  if (options_.once) {
    if (const auto ending = replay(*grant)) return *ending;
  }
  return supervise(*grant);
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

Ending RunSession::not_taken(const Error& error) const {
  if (exit_status(error.code) != ExitStatus::busy) return report(error);
  // A job skipped because it is running already should not make cron send mail.
  if (options_.busy_status != 0 || options_.verbose) report(error);
  return Ending::passed_on(options_.busy_status);
}

process::Command RunSession::command_for(const Grant& grant) const {
  process::Command command{.argv = options_.command};
  command.environment = {{"LEASEHOLD_LOCK", lock_.str()},
                         {"LEASEHOLD_STORE", client_.store().address},
                         {"LEASEHOLD_REQUEST", grant.lease.request().hex()},
                         // Else those of an outer run would stay, and belong to another lock.
                         {"LEASEHOLD_TOKEN", std::nullopt},
                         {"LEASEHOLD_LINEAGE", std::nullopt},
                         {"LEASEHOLD_SLOT", std::nullopt}};
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
  const Millis ttl = grant.lease.ttl();  // a store may give less than was asked for
  const Watch watch{options_.on_lost,
                    std::min(options_.grace.value_or(default_grace(ttl)), ttl / 2),
                    [this] { return client_.renewal_error(); }, options_.verbose};
  Supervisor supervisor(grant.lease, signals_, watch);
  const auto end = supervisor.run(command_for(grant));
  if (end) return after_command(grant, *end);
  note_now(end.error().message);
  if (const auto released = grant.lease.release(); !released) report(released.error());
  return end.error().ending;
}

Ending RunSession::after_command(Grant& grant, const CommandEnd& end) {
  if (end.for_lease) return ExitStatus::lost;
  pass_interrupt_on_ = end.had_terminal && end.status == process::ExitStatus::signalled(SIGINT);
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
  stay(grant, until);
  return grant.lease.release();
}

// For stores that keep a lock only as long as somebody renews it.
void RunSession::stay(const Grant& grant, BootTime until) {
  say("staying to keep " + in_quotes(lock_.str()));
  BootTimer timer;
  Flag lost;
  timer.set(until);
  const std::stop_callback told(grant.lease.lost(), [&] { lost.raise(); });
  for (;;) {
    pollfd events[] = {{timer.fd(), POLLIN, 0}, {lost.fd(), POLLIN, 0}, {signals_.fd(), POLLIN, 0}};
    if (poll(events, std::size(events), -1) < 0) continue;
    if (events[0].revents != 0 || events[1].revents != 0) return;
    if (signals_.take_end_request()) return;
  }
}

class Run final : public Subcommand {
 public:
  void declare(Arguments& arguments) override;
  Ending execute() override;

 private:
  Status check() const;
  Ending run(Signals& signals, bool& pass_interrupt_on);
  RunOptions options_;
};

void Run::declare(Arguments& arguments) {
  RunOptions& o = options_;
  arguments.usage("NAME [OPTIONS] -- COMMAND...");
  arguments.description(
      "Takes the lock NAME, runs the command, gives the lock back and exits as the command did. "
      "The command runs in a process group of its own and gets LEASEHOLD_LOCK, LEASEHOLD_STORE, "
      "LEASEHOLD_REQUEST and, with --fenced, LEASEHOLD_TOKEN and LEASEHOLD_LINEAGE; with "
      "--permits, LEASEHOLD_SLOT: which of them it has, from 0 on. Fence each slot as a resource "
      "of its own, NAME#$LEASEHOLD_SLOT. Signals are passed on to it. If the lease is lost, its "
      "whole process group is ended. What it leaves running in the background is ended when it "
      "ends.");
  declare_lease(arguments, o, "the command", "host:pid:command");
  arguments.rest_after_dashes("COMMAND", o.command, "The command and its arguments");
  arguments.duration("--at-least", o.at_least,
                     "Keep the lock that long even if the command ends earlier, so that somebody "
                     "who starts a little later does not run the job again");
  arguments.choice<OnLost>(
      "--on-lost", {{"kill", OnLost::kill}, {"term", OnLost::term}, {"ignore", OnLost::ignore}},
      o.on_lost,
      "What to do with the command when its lease is lost: SIGTERM, then SIGKILL "
      "before the lease ends (kill, the default); only SIGTERM; only a message");
  arguments.duration("--grace", o.grace, "From SIGTERM to SIGKILL; at most half of --ttl",
                     kAnyDuration, "a sixth of it and at most 10s");
  arguments.option(
      "--once", "KEY", o.once,
      "Run once per KEY: if the command succeeded under this lock and key before, exit "
      "with 0 without running. 'leasehold once' lists and forgets keys");
  arguments.choice<OnceKeeps>(
      "--once-keeps", {{"success", OnceKeeps::success}, {"any", OnceKeeps::any}}, o.once_keeps,
      "With --once: does a failure count too? success, the default: it "
      "runs again; any: a repeat exits with the same status without "
      "running");
  arguments.number("--busy-status", o.busy_status,
                   "Exit status if somebody else holds the lock. With 0 nothing is printed either",
                   kStatuses);
  arguments.flag("--verbose,-v", o.verbose, "Say what happens, and when");
  arguments.ends_with(ExitStatus::done,
                      "the command ended with 0; its other statuses are passed on");
  arguments.also_ends_with(ExitStatus::wrong_input, "a --once key used with another command");
  arguments.ends_with(ExitStatus::busy, "busy: somebody else holds the lock (see --busy-status)");
  arguments.ends_with(
      ExitStatus::lost,
      "the lease was lost, or was about to be: the command was ended, or not started");
  arguments.ends_with(ExitStatus::not_executable, "the command could not be executed");
  arguments.ends_with(ExitStatus::not_found, "the command was not found");
  arguments.ends_with(ExitStatus::by_signal, "the command was ended by signal n");
  arguments.ends_with(
      ExitStatus::cancelled,
      "a signal came before the command was started, as while waiting for the lock");
  arguments.example("leasehold run backup -- /usr/local/bin/backup.sh",
                    "in a crontab: not twice at the same time");
  arguments.example("leasehold run report --wait 5m --ttl 1m -- make report",
                    "wait for the other one to finish");
  arguments.example(
      "leasehold run gpu --permits 4 --wait 1h -- sh -c 'train --gpu $LEASEHOLD_SLOT'",
      "at most four at the same time, each on a GPU of its own");
  arguments.example("leasehold run invoices --once \"$(date +%F)\" --at-least 1m -- send-invoices",
                    "once a day, whoever comes first");
}

Status Run::check() const {
  const auto mode = TRY(chosen_mode(options_));
  if (options_.grace && *options_.grace > options_.ttl / 2) {
    return fail(ErrorCode::invalid, "--grace: " + format_duration(*options_.grace) +
                                        " is more than half of the ttl of " +
                                        format_duration(options_.ttl));
  }
  if (options_.once) {
    TRY(detail::check_name("--once key", *options_.once));
    if (!mode.is_exclusive()) {
      return fail(ErrorCode::invalid,
                  "--once: those who hold the lock beside each other would each run the command; "
                  "leave out --shared and --permits");
    }
  } else if (options_.once_keeps == OnceKeeps::any) {
    return fail(ErrorCode::invalid, "--once-keeps needs --once");
  }
  return {};
}

Ending Run::execute() {
  bool pass_interrupt_on = false;
  if (options_.verbose) tell_time_in_notes();
  const Ending ending = [&] {
    Signals signals;
    return run(signals, pass_interrupt_on);
  }();
  // A script around this program ends on Ctrl-C only if it gets the signal too and its child died
  // of it.
  if (pass_interrupt_on) kill(0, SIGINT);
  return ending;
}

Ending Run::run(Signals& signals, bool& pass_interrupt_on) {
  auto lock = chosen_lock(options_.name);
  if (!lock) return report(lock.error());
  if (const auto ok = check(); !ok) return report(ok.error());
  auto owner = chosen_owner(options_, options_.command.front());
  if (!owner) return report(owner.error());
  Waiting connecting(signals);
  auto client = await_store(options_.store, {.owner = std::move(*owner), .stop = connecting.stop()},
                            options_.wait);
  if (connecting.end()) return not_started();
  if (!client) return report(client.error());
  RunSession session(options_, std::move(*lock), std::move(*client), signals);
  const Ending ending = session.go();
  pass_interrupt_on = session.pass_interrupt_on();
  return ending;
}

}  // namespace

SubcommandEntry run_command() {
  return {"run", "Run a command while holding a lock", make<Run>};
}

}  // namespace leasehold::cli
