#include <unistd.h>

#include <algorithm>
#include <sstream>

#include "arguments.h"
#include "drill/runner/run.h"
#include "drill_matrix.h"
#include "duration.h"
#include "exit_status.h"
#include "leasehold/drill/history_file.h"
#include "leasehold/process/io.h"
#include "leasehold/stores.h"
#include "leasehold/ttl.h"
#include "output.h"
#include "own_program.h"
#include "signals.h"
#include "subcommand.h"
#include "subcommands.h"

namespace leasehold::cli {
namespace {

using namespace std::chrono_literals;

// One line on the terminal, written over again and again, and gone at the end.
class ProgressLine {
 public:
  explicit ProgressLine(Millis whole) : whole_(whole), shown_(isatty(STDERR_FILENO) == 1) {}
  ~ProgressLine() { write(""); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void draw(const drill::Progress& progress) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(progress.elapsed);
    write(std::to_string(seconds.count()) + " of " +
          std::to_string(std::chrono::ceil<std::chrono::seconds>(whole_).count()) + " s, " +
          std::to_string(progress.faults) +
          " faults, late writes: " + std::to_string(progress.refused) + " refused, " +
          std::to_string(progress.accepted) + " accepted; Ctrl-C ends it with what there is");
  }

 private:
  void write(std::string text) {
    if (!shown_) return;
    const std::size_t length = text.size();
    text.resize(std::max(length, drawn_), ' ');
    drawn_ = length;
    process::write_within(STDERR_FILENO, "\r" + text + (length == 0 ? "\r" : ""),
                          process::within(0s));
  }

  const Millis whole_;
  const bool shown_;
  std::size_t drawn_ = 0;
};

Result<std::vector<drill::Fault>> parse_faults(const std::string& list) {
  std::vector<drill::Fault> faults;
  std::istringstream words(list);
  for (std::string word; std::getline(words, word, ',');) {
    if (word == "none") continue;
    if (word == "all") return drill::all_faults();
    const auto fault = drill::parse_fault(word);
    if (!fault) {
      std::string known;
      for (const drill::Fault each : drill::all_faults()) {
        known += (known.empty() ? "" : ", ") + std::string(to_string(each));
      }
      return fail(ErrorCode::invalid,
                  "there is no fault '" + word + "'; there are " + known + ", all and none");
    }
    if (std::find(faults.begin(), faults.end(), *fault) == faults.end()) faults.push_back(*fault);
  }
  return faults;
}

std::string table(const drill::Outcome& outcome) {
  Table rows;
  const auto row = [&rows](std::string what, std::string value, Colour colour = Colour::none) {
    rows.add({{std::move(what)}, {std::move(value), colour}});
  };
  const auto bad = [&row](std::string what, std::uint64_t count) {
    row(std::move(what), std::to_string(count), count > 0 ? Colour::red : Colour::green);
  };
  row("store", outcome.store);
  row("fence",
      outcome.fence + (outcome.fence_by_claim ? " (by claim: the store has no tokens)" : ""));
  row("workers", std::to_string(outcome.workers) + " for each of " + std::to_string(outcome.locks) +
                     " locks, TTL " + std::to_string(outcome.ttl.count()) + " ms, seed " +
                     std::to_string(outcome.seed));
  for (const drill::Injected& fault : outcome.faults) {
    row(fault.fault, std::to_string(fault.times) + " times");
  }
  const double seconds = std::chrono::duration<double>(outcome.duration).count();
  char rate[64];
  std::snprintf(rate, sizeof rate, "%llu in %.1f s, %.1f a second",
                static_cast<unsigned long long>(outcome.cycles), seconds,
                seconds > 0 ? static_cast<double>(outcome.cycles) / seconds : 0.0);
  row("full cycles", rate);
  if (outcome.unfinished > 0) row("unfinished cycles", std::to_string(outcome.unfinished));
  row("grants", std::to_string(outcome.report.grants));
  row("overlaps at the lock", std::to_string(outcome.report.overlaps.count));
  row("writes accepted", std::to_string(outcome.writes));
  row("stale writes refused", std::to_string(outcome.stale_refused));
  bad("stale writes accepted", outcome.stale_accepted);
  if (outcome.stale_unknown > 0) {
    row("stale writes unanswered", std::to_string(outcome.stale_unknown));
  }
  bad("updates lost", outcome.updates_lost);
  std::uint64_t broken = 0;
  for (const std::uint64_t count : outcome.report.counts) broken += count;
  bad("invariants broken", broken);
  std::string text = rows.str();
  for (const std::string& each : outcome.notes) text += "note: " + each + "\n";
  return text;
}

int status_of(const drill::Outcome& outcome) {
  switch (judge(outcome)) {
    case drill::Verdict::held:
      return 0;
    case drill::Verdict::damage:
      return kExitDamage;
    case drill::Verdict::too_little:
      return kExitTooLittle;
  }
  return kExitInternal;
}

class Drill final : public Subcommand {
 public:
  void declare(Arguments& arguments) override;
  int execute() override;

 private:
  Status check();
  static Result<drill::Drilled> run(const drill::Plan& plan);

  std::optional<std::string> store_;
  std::optional<std::string> fence_;
  std::optional<std::string> faults_;
  std::optional<Millis> ttl_;
  std::optional<std::string> history_;
  Millis duration_ = 10s;
  int workers_ = 3;
  int locks_ = 6;
  int cycles_ = 0;
  int seed_ = 1;
  bool each_fault_ = false;
  bool markdown_ = false;
  bool details_ = false;
  drill::Plan plan_;
};

void Drill::declare(Arguments& arguments) {
  arguments.description(
      "Real worker processes take locks and read and replace a number behind a fence, while a "
      "nemesis injects faults: by default it freezes each holder past its lease, waits until a "
      "successor has entered, and thaws it. The late write must be refused. In the end a checker "
      "reads what happened and says whether anything was accepted that should not have been, and "
      "whether an update was lost.");
  arguments.option("--store", "STORE", store_,
                   "Where the locks live. sqlite (the default), postgres, postgres-advisory, "
                   "redis, redlock, etcd or zookeeper: the drill starts one of its own, on "
                   "loopback. all: one drill after the other. Or the URL of a store that is there");
  arguments.option(
      "--fence", "FENCE", fence_,
      "What guards the number: sqlite, postgres, redis, etcd, zookeeper, file, http (the gate) or "
      "a URL; none shows what happens without. Default: the store's own kind, or "
      "sqlite for a store that is named by its URL");
  arguments.option(
      "--fault", "LIST", faults_,
      "What the nemesis does, with commas: pause, kill-holder, kill-server, "
      "restart-server, cut, delay, lose-reply, clock, failover; all, none. Default: pause");
  arguments.flag("--each-fault", each_fault_,
                 "A drill for each fault by itself, with pauses, and one table of all");
  arguments.flag("--markdown", markdown_, "That table for a page in Markdown");
  arguments.number("--workers", 2, 64, workers_, "Processes for each lock; default 3");
  arguments.number("--locks", 1, 256, locks_, "Locks, each with its own workers; default 6");
  arguments.duration("--ttl", ttl_, "Of the leases; default: as short as the store allows");
  arguments.duration("--duration", duration_, "How long, 100ms to 24h; default 10s");
  arguments.number("--cycles", 0, 1'000'000'000, cycles_, "End earlier, after so many full cycles");
  arguments.number("--seed", 0, 2'000'000'000, seed_, "What is left to chance comes from it");
  arguments.option("--history", "FILE", history_, "Keep what happened, for the checker");
  arguments.flag("--details", details_, "Show the records of what was broken");
  arguments.example("leasehold drill", "ten seconds on the embedded store");
  arguments.example("leasehold drill --store all --fault all --each-fault --duration 5s",
                    "every store and every fault that it can have");
  arguments.example("leasehold drill --fence none", "the same without the fence: updates are lost");
  arguments.lists_exit_statuses();
}

Status Drill::check() {
  auto faults = parse_faults(faults_.value_or("pause"));
  if (!faults) return fail(faults.error());
  if (ttl_) {
    if (auto ttl = Ttl::of(*ttl_); !ttl) return fail(ttl.error());
  }
  if (duration_ < 100ms || duration_ > 24h) {
    return fail(ErrorCode::invalid, "--duration must be from 100 ms to 24 h");
  }
  plan_.store = store_.value_or("sqlite");
  plan_.fence = fence_.value_or("");
  plan_.faults = std::move(*faults);
  plan_.workers = static_cast<unsigned>(workers_);
  plan_.locks = static_cast<unsigned>(locks_);
  plan_.ttl = ttl_;
  plan_.duration = duration_;
  plan_.cycles = static_cast<std::uint64_t>(cycles_);
  plan_.seed = static_cast<std::uint64_t>(seed_);
  plan_.program = own_program();
  return {};
}

Result<drill::Drilled> Drill::run(const drill::Plan& plan) {
  Signals signals;
  ProgressLine line(plan.duration);
  return drill::run_drill(plan,
                          {.wake = signals.fd(),
                           .interrupted = [&signals] { return signals.take_end_request(); },
                           .progress = [&line](const auto& progress) { line.draw(progress); }});
}

int Drill::execute() {
  if (auto ok = check(); !ok) return report(ok.error());
  register_stores();
  if (plan_.store == "all" || each_fault_ || markdown_) {
    return tell_drills(drills_of(plan_, each_fault_), run, markdown_);
  }
  const auto drilled = run(plan_);
  if (!drilled) return report(drilled.error());
  if (history_) {
    auto saved = drill::save_history(drilled->history, *history_, drill::current_boot());
    if (!saved) return report(saved.error());
  }
  std::string text = table(drilled->outcome);
  if (details_) text += "\n" + to_text(drilled->outcome.report, drilled->history);
  const drill::Verdict verdict = judge(drilled->outcome);
  const Colour colour = verdict == drill::Verdict::held     ? Colour::green
                        : verdict == drill::Verdict::damage ? Colour::red
                                                            : Colour::yellow;
  text += "\n" + coloured(colour, sentence(drilled->outcome)) + "\n";
  if (const int failed = print(text); failed != 0) return failed;
  return status_of(drilled->outcome);
}

}  // namespace

std::unique_ptr<Subcommand> make_drill() {
  return std::make_unique<Drill>();
}

}  // namespace leasehold::cli
