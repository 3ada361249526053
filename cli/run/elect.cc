#include <poll.h>
#include <signal.h>

#include <iterator>
#include <utility>

#include "cli/command/arguments.h"
#include "cli/command/events.h"
#include "cli/command/output.h"
#include "cli/command/store_choice.h"
#include "cli/command/subcommand.h"
#include "cli/run/session.h"

namespace leasehold::cli {
namespace {

using namespace std::chrono_literals;

constexpr Millis kAsLongAsItTakes = Millis::max();
constexpr Range<Millis> kPauses{0ms, 24h};

struct ElectOptions : RunOptions {
  Millis pause = 1s;
  bool end_with_command = false;
};

// False: a signal that asks to end came first.
bool rest(Millis pause, Signals& signals) {
  BootTimer timer;
  timer.set(BootClock::now() + pause);
  for (;;) {
    pollfd events[] = {{timer.fd(), POLLIN, 0}, {signals.fd(), POLLIN, 0}};
    if (poll(events, std::size(events), -1) < 0) continue;  // EINTR
    while (const auto number = signals.next()) {
      if (Signals::asks_to_end(*number)) return false;
      if (*number == SIGTSTP) stop_as_asked();
    }
    if (events[0].revents != 0) return true;
  }
}

class Elect final : public Subcommand {
 public:
  void declare(Arguments& arguments) override;
  Ending execute() override;

 private:
  Ending stand(Signals& signals, bool& pass_interrupt_on);
  std::optional<Ending> term_of_office(RunSession& session);
  ElectOptions options_;
};

void Elect::declare(Arguments& arguments) {
  ElectOptions& o = options_;
  arguments.usage("NAME [OPTIONS] -- COMMAND...");
  arguments.description(
      "Stands for the lead under the lock NAME, as long as it takes, and runs the command while it "
      "leads, as 'leasehold run' does and with the same variables. When the command ends, or the "
      "lease is lost, it stands again. A signal that asks to end is passed on to the command, and "
      "ends this. 'leasehold watch NAME' tells who leads.");
  declare_lease_alone(arguments, o, "the command", "host:pid:command");
  declare_command(arguments, o);
  arguments.choice<OnLost>(
      "--on-lost", {{"kill", OnLost::kill}, {"term", OnLost::term}}, o.on_lost,
      "What to do with the command when its lease is lost: SIGTERM, then SIGKILL "
      "before the lease ends (kill, the default); only SIGTERM");
  declare_grace(arguments, o);
  arguments.duration("--pause", o.pause,
                     "How long to stay away before standing again, so that another one may lead",
                     kPauses);
  arguments.flag("--end-with-command", o.end_with_command,
                 "When the command ends by itself, exit as it did. After a lost lease stand again");
  arguments.flag("--verbose,-v", o.verbose, "Say what happens, and when");
  arguments.ends_with(ExitStatus::done,
                      "with --end-with-command, or after a signal: the command ended with 0; its "
                      "other statuses are passed on");
  arguments.ends_with(ExitStatus::lost, "after a signal: the lease was lost before");
  declare_ends_of_command(arguments);
  arguments.example("leasehold elect scheduler --note \"$(hostname):8080\" -- ./scheduler",
                    "one scheduler at a time; the note tells the others where it is");
  arguments.example("leasehold elect writer --fenced -- ./writer",
                    "with a token, so that the resource can refuse a leader who was frozen");
}

Ending Elect::execute() {
  bool pass_interrupt_on = false;
  if (options_.verbose) tell_time_in_notes();
  const Ending ending = [&] {
    Signals signals;
    return stand(signals, pass_interrupt_on);
  }();
  if (pass_interrupt_on) kill(0, SIGINT);  // as 'run' does
  return ending;
}

Ending Elect::stand(Signals& signals, bool& pass_interrupt_on) {
  auto lock = chosen_lock(options_.name);
  if (!lock) return report(lock.error());
  if (const auto ok = check_grace(options_); !ok) return report(ok.error());
  auto owner = chosen_owner(options_, options_.command.front());
  if (!owner) return report(owner.error());
  options_.wait = kAsLongAsItTakes;
  Waiting connecting(signals);
  auto client = await_store(options_.store, {.owner = std::move(*owner), .stop = connecting.stop()},
                            options_.wait);
  if (connecting.end()) return not_started();
  if (!client) return report(client.error());
  options_.wait = kAsLongAsItTakes;
  for (;;) {
    RunSession session(options_, *lock, *client, signals);
    const auto ending = term_of_office(session);
    pass_interrupt_on = session.pass_interrupt_on();
    if (ending) return *ending;
    if (!rest(options_.pause, signals)) return not_started();
  }
}

// Nothing: it stands again.
std::optional<Ending> Elect::term_of_office(RunSession& session) {
  auto grant = session.take();
  if (session.asked_to_end()) return not_started();
  if (!grant) return report(grant.error());
  const Ending ending = session.work(*grant);
  const bool lost = ending.is_own() && ending.number() == static_cast<int>(ExitStatus::lost);
  const bool stands_again = session.command_ended() ? !options_.end_with_command : lost;
  return stands_again && !session.asked_to_end() ? std::nullopt : std::optional(ending);
}

}  // namespace

SubcommandEntry elect_command() {
  return {"elect", "Run a command while leading, on one machine at a time", make<Elect>};
}

}  // namespace leasehold::cli
