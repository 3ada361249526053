#include "cli/run/rated_run.h"

#include <unistd.h>

#include "cli/run/rate.h"

namespace leasehold::cli {

using namespace std::chrono_literals;

Ending RatedRun::go() {
  auto limit = RateLimit::of(client_, lock_.str(), rate_);
  if (!limit) return report(limit.error());
  const auto turn = take_turn(*limit);
  const BootTime until = BootClock::now() + rate_.interval;
  if (asked_to_end_ || signals_.take_end_request()) return not_started();
  if (!turn) return not_taken(options_, turn.error());
  say("took a turn of " + in_quotes(lock_.str()) + ", at most " + written(rate_));
  return run(until);
}

Status RatedRun::take_turn(RateLimit& limit) {
  const bool tell = options_.wait > 0ms && (options_.verbose || isatty(STDERR_FILENO) == 1);
  Waiting waiting(signals_, tell ? std::optional(Waiting::For{client_, lock_}) : std::nullopt);
  auto turn = limit.take_turn(
      {.wait = options_.wait, .stop = waiting.stop(), .note = options_.note.value_or("")});
  asked_to_end_ = waiting.end();
  return turn;
}

Ending RatedRun::run(BootTime until) {
  Supervisor supervisor(nullptr, signals_, {.grace = grace_of(options_.grace, options_.ttl)});
  const auto end = supervisor.run(command_under(options_, lock_, client_));
  if (!end) {
    note_now(end.error().message);
    return end.error().ending;
  }
  pass_interrupt_on_ = end->had_terminal && end->status == process::ExitStatus::signalled(SIGINT);
  asked_to_end_ = end->asked_to_end || pass_interrupt_on_;
  if (!client_.store().keeps_after_release && !asked_to_end_) stay_for_turn(until);
  if (end->status.known()) return Ending::passed_on(end->status.shell_status());
  note_now("the command has ended, but the system did not tell how");
  return ExitStatus::internal;
}

// Where a turn lasts no longer than who took it.
void RatedRun::stay_for_turn(BootTime until) {
  if (BootClock::now() >= until) return;
  say("staying to keep the turn of " + in_quotes(lock_.str()));
  stay(until, {}, signals_);
}

}  // namespace leasehold::cli
