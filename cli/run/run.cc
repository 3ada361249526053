#include <signal.h>

#include <string>
#include <utility>

#include "cli/command/arguments.h"
#include "cli/command/output.h"
#include "cli/command/signals.h"
#include "cli/command/store_choice.h"
#include "cli/command/subcommand.h"
#include "cli/command/waiting.h"
#include "cli/run/rate.h"
#include "cli/run/rated_run.h"
#include "cli/run/session.h"
#include "kit/try.h"

namespace leasehold::cli {
namespace {

constexpr Range<std::int64_t> kStatuses{0, 255};

class Run final : public Subcommand {
 public:
  void declare(Arguments& arguments) override;
  Ending execute() override;

 private:
  Status check() const;
  Result<std::optional<Rate>> chosen_rate() const;
  Ending run(Signals& signals, bool& pass_interrupt_on);
  RunOptions options_;
  std::optional<std::string> rate_;
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
  declare_command(arguments, o);
  arguments.duration("--at-least", o.at_least,
                     "Keep the lock that long even if the command ends earlier, so that somebody "
                     "who starts a little later does not run the job again");
  arguments.choice<OnLost>(
      "--on-lost", {{"kill", OnLost::kill}, {"term", OnLost::term}, {"ignore", OnLost::ignore}},
      o.on_lost,
      "What to do with the command when its lease is lost: SIGTERM, then SIGKILL "
      "before the lease ends (kill, the default); only SIGTERM; only a message");
  declare_grace(arguments, o);
  arguments.option("--rate", "N/INTERVAL", rate_,
                   "Start at most so many of these commands in any such interval, as 10/1m, by all "
                   "who use the lock NAME with this rate; --wait for a turn. For efficiency");
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
  declare_ends_of_command(arguments);
  arguments.example("leasehold run backup -- /usr/local/bin/backup.sh",
                    "in a crontab: not twice at the same time");
  arguments.example("leasehold run report --wait 5m --ttl 1m -- make report",
                    "wait for the other one to finish");
  arguments.example(
      "leasehold run gpu --permits 4 --wait 1h -- sh -c 'train --gpu $LEASEHOLD_SLOT'",
      "at most four at the same time, each on a GPU of its own");
  arguments.example("leasehold run invoices --once \"$(date +%F)\" --at-least 1m -- send-invoices",
                    "once a day, whoever comes first");
  arguments.example("leasehold run their-api --rate 10/1m --wait 5m -- ./call-them.sh",
                    "at most ten calls in any minute, by all machines together");
}

Status Run::check() const {
  const auto mode = TRY(chosen_mode(options_));
  TRY(check_grace(options_));
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

// Nothing: it runs under a lease.
Result<std::optional<Rate>> Run::chosen_rate() const {
  if (!rate_) return std::nullopt;
  const RunOptions& o = options_;
  const std::pair<bool, const char*> of_a_lease[] = {
      {o.shared, "--shared"},
      {o.permits.has_value(), "--permits"},
      {o.fenced, "--fenced"},
      {o.once.has_value(), "--once"},
      {o.at_least > Millis(0), "--at-least"},
      {o.on_lost != OnLost::kill, "--on-lost"},
      {o.ttl != RunOptions().ttl, "--ttl"},
  };
  for (const auto& [given, option] : of_a_lease) {
    if (!given) continue;
    return fail(ErrorCode::invalid, "--rate and " + std::string(option) +
                                        " cannot be used together: under a rate the command has "
                                        "its turn, which lasts for the interval, and no lease");
  }
  auto rate = parse_rate(*rate_);
  if (!rate) return fail(ErrorCode::invalid, "--rate: " + rate.error().message);
  return *rate;
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
  const auto rate = chosen_rate();
  if (!rate) return report(rate.error());
  if (const auto ok = check(); !ok) return report(ok.error());
  auto owner = chosen_owner(options_, options_.command.front());
  if (!owner) return report(owner.error());
  Waiting connecting(signals);
  auto client = await_store(options_.store, {.owner = std::move(*owner), .stop = connecting.stop()},
                            options_.wait);
  if (connecting.end()) return not_started();
  if (!client) return report(client.error());
  if (*rate) {
    RatedRun rated(options_, **rate, std::move(*lock), std::move(*client), signals);
    const Ending ending = rated.go();
    pass_interrupt_on = rated.pass_interrupt_on();
    return ending;
  }
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
