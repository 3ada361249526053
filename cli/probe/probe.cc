#include <poll.h>

#include <system_error>
#include <thread>

#include "cli/command/answer_file.h"
#include "cli/command/arguments.h"
#include "cli/command/events.h"
#include "cli/command/output.h"
#include "cli/command/progress_line.h"
#include "cli/command/signals.h"
#include "cli/command/subcommand.h"
#include "cli/probe/bars.h"
#include "cli/probe/report.h"
#include "leasehold/probe/load.h"

namespace leasehold::cli {
namespace {

using namespace std::chrono_literals;

constexpr Millis kRedraw = 200ms;

struct ProbeOptions {
  Millis duration = 10s;
  int load = 0;
  bool spin = false;
  Millis ttl = 30s;
  int rate = 100;
  Millis operation = 10ms;
  std::optional<std::string> svg;
  bool json = false;
};

std::string told(const probe::Progress& progress, Nanos whole) {
  return "measuring: " + format_span(Nanos(progress.measured)) + " of " + format_span(whole) +
         ", longest delay so far " + format_span(Nanos(progress.worst)) +
         "; Ctrl-C ends it with what there is";
}

class Probe final : public Subcommand {
 public:
  void declare(Arguments& arguments) override;
  Ending execute() override;

 private:
  probe::Measurement measure(const probe::MeasureOptions& how) const;
  Result<ProbeReport> take() const;

  ProbeOptions options_;
};

void Probe::declare(Arguments& arguments) {
  ProbeOptions& o = options_;
  arguments.description(
      "A lease is safe as long as its holder is not paused for longer than what is left of it. "
      "This "
      "measures how late a thread of this machine runs when it wants to, shows the distribution, "
      "and says what that means for a TTL: how often an operation would go on after its lease had "
      "ended, and under which assumptions. Suspend and SIGSTOP count as pauses. Ctrl-C ends it "
      "early, with the result so far and exit status 0. No TTL makes the number zero; that is what "
      "the fence is for.");
  arguments.ends_with(ExitStatus::cancelled, "a signal came before anything was measured");
  arguments.duration("--duration", o.duration, "How long to measure", {100ms, kAnyDuration.most});
  arguments.number("--load", o.load,
                   "Keep N threads busy meanwhile, to see the pauses of a loaded machine",
                   {0, 256});
  arguments.flag("--spin", o.spin,
                 "Look at the clock all the time instead of sleeping in between: what a thread "
                 "that computes meets, without the delay of waking up. Keeps one processor busy");
  arguments.duration("--ttl", o.ttl, "The TTL to judge", kTtls);
  arguments.number("--rate", o.rate, "How many operations a second are done under the lease",
                   {1, 10'000'000});
  arguments.duration(
      "--operation", o.operation,
      "How long one operation is in flight, from its look at the lease to its effect", {1ms, 24h});
  arguments.option("--svg", "FILE", o.svg, "Draw the distribution into this file as well");
  arguments.flag("--json", o.json, "For programs: one JSON object");
  arguments.example("leasehold probe", "ten seconds, on the machine as it is");
  arguments.example("leasehold probe --duration 1h --load 8 --svg pauses.svg",
                    "an hour under load, with a picture");
  arguments.example("leasehold probe --ttl 5s --rate 2000 --operation 3ms",
                    "is a TTL of five seconds enough?");
}

// The threads are made here, after the signals were blocked in this one.
probe::Measurement Probe::measure(const probe::MeasureOptions& how) const {
  Signals signals;
  const SignalUnblocked ctrl_z(SIGTSTP);
  const probe::Load load(options_.load);
  probe::Progress progress;
  probe::Measurement measured;
  Flag over;
  std::jthread thread([&](const std::stop_token& stop) {
    measured = probe::measure(how, stop, progress);
    over.raise();
  });
  ProgressLine line;
  for (;;) {
    if (progress.measured > 0) line.draw(told(progress, how.duration));
    pollfd events[] = {{over.fd(), POLLIN, 0}, {signals.fd(), POLLIN, 0}};
    if (poll(events, std::size(events), static_cast<int>(kRedraw.count())) < 0) continue;
    if (events[0].revents != 0 || signals.take_end_request()) break;
  }
  thread.request_stop();
  thread.join();
  return measured;
}

Result<ProbeReport> Probe::take() const {
  ProbeReport report;
  report.how = {.duration = options_.duration,
                .waiting = options_.spin ? probe::Waiting::spin : probe::Waiting::sleep};
  report.load = options_.load;
  report.processors = std::max(std::thread::hardware_concurrency(), 1u);
  report.work = {options_.ttl, static_cast<double>(options_.rate), options_.operation};
  try {
    report.measured = measure(report.how);
  } catch (const std::system_error& error) {
    return fail(ErrorCode::internal, "cannot start the threads to measure with", error.what());
  }
  if (report.measured.delays.count() == 0) {
    return fail(ErrorCode::cancelled, "a signal came before anything was measured");
  }
  return report;
}

Ending Probe::execute() {
  std::optional<AnswerFile> picture;
  if (options_.svg) {
    auto opened = AnswerFile::open(*options_.svg);
    if (!opened) return report(opened.error());
    picture = std::move(*opened);
  }
  const auto found = take();
  if (!found) return report(found.error());
  const ExitStatus printed = print(options_.json ? probe_json(*found) : probe_text(*found));
  if (!picture) return printed;
  if (const auto drawn = picture->write(probe_svg(*found)); !drawn) return report(drawn.error());
  return printed;
}

}  // namespace

SubcommandEntry probe_command() {
  return {"probe", "Measure this machine's pauses, to choose a TTL", make<Probe>};
}

}  // namespace leasehold::cli
