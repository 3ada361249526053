#include <algorithm>
#include <sstream>

#include "cli/command/arguments.h"
#include "cli/command/output.h"
#include "cli/command/own_program.h"
#include "cli/command/progress_line.h"
#include "cli/command/signals.h"
#include "cli/command/store_choice.h"
#include "cli/command/subcommand.h"
#include "cli/command/text.h"
#include "cli/command/wall_time.h"
#include "cli/drill/matrix.h"
#include "cli/drill/output.h"
#include "cli/drill/own_worker.h"
#include "cli/drill/statuses.h"
#include "drill/runner/parts.h"
#include "drill/runner/run.h"
#include "drill/runner/site.h"
#include "kit/try.h"
#include "leasehold/stores.h"

namespace leasehold::cli {
namespace {

using namespace std::chrono_literals;

// `whole`: what follows the seconds that have passed.
std::string told(const drill::Progress& progress, const std::string& whole) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(progress.elapsed);
  return std::to_string(seconds.count()) + whole + ", " + std::to_string(progress.faults) +
         " faults, late writes: " + std::to_string(progress.refused) + " refused, " +
         std::to_string(progress.accepted) + " accepted; Ctrl-C ends it with what there is";
}

struct ChosenFaults {
  std::vector<drill::Fault> faults;
  bool all = false;  // that the store can have
};

Result<ChosenFaults> parse_faults(const std::string& list) {
  if (list.find("://") != std::string::npos) {
    return fail(ErrorCode::invalid, "'" + shown(list) + "' is no list of faults");
  }
  ChosenFaults chosen;
  std::istringstream words(list);
  for (std::string word; std::getline(words, word, ',');) {
    if (word == "none") continue;
    if (word == "all") return ChosenFaults{drill::all_faults(), true};
    const auto fault = drill::parse_fault(word);
    if (!fault) {
      std::string known;
      for (const drill::Fault each : drill::all_faults()) {
        known += (known.empty() ? "" : ", ") + std::string(to_string(each));
      }
      return fail(ErrorCode::invalid,
                  "there is no fault '" + shown(word) + "'; there are " + known + ", all and none");
    }
    auto& faults = chosen.faults;
    if (std::find(faults.begin(), faults.end(), *fault) == faults.end()) faults.push_back(*fault);
  }
  return chosen;
}

class Drill final : public Subcommand {
 public:
  void declare(Arguments& arguments) override;
  Ending execute() override;

 private:
  Status check();
  Status check_own_worker() const;
  static Result<drill::Drilled> run(const drill::Plan& plan);
  Result<drill::Drilled> run_own_worker() const;

  std::optional<std::string> store_;
  std::optional<std::string> fence_;
  std::optional<std::string> faults_;
  std::optional<Millis> ttl_;
  std::optional<Millis> duration_;
  std::optional<unsigned> workers_;
  std::optional<unsigned> locks_;
  bool each_fault_ = false;
  bool markdown_ = false;
  DrillOutput output_;
  OwnWorker own_worker_;
  drill::Plan plan_;
};

void Drill::declare(Arguments& arguments) {
  arguments.usage("[OPTIONS] [-- COMMAND...]");
  arguments.description(
      "Real worker processes take locks and read and replace a number behind a fence, while a "
      "nemesis injects faults: by default it freezes each holder past its lease, waits until a "
      "successor has entered, and thaws it. The late write must be refused. In the end a checker "
      "reads what happened and says whether anything was accepted that should not have been, and "
      "whether an update was lost.");
  auto stores = drill::known_stores();
  const std::string startable = either(stores);
  stores.emplace_back("all");
  arguments.option("--store", "STORE", store_,
                   "Where the locks live. " + startable +
                       ": the drill starts one of its own, on loopback; default sqlite. all: one "
                       "drill after the other. Or the URL of a store that is there",
                   std::move(stores));
  auto fences = drill::known_fences();
  const std::vector<std::string> named(fences.begin() + 1, fences.end());
  arguments.option("--fence", "FENCE", fence_,
                   "What guards the number: " + either(named) +
                       ", or a URL (http is the gate); none shows what happens without. Default: "
                       "the store's own kind, or sqlite for a store that is named by its URL",
                   std::move(fences));
  arguments.option(
      "--fault", "LIST", faults_,
      "What the nemesis does, with commas: pause, kill-holder, kill-server, "
      "restart-server, cut, delay, lose-reply, clock, failover; all that the store can have, none. "
      "Default: pause");
  arguments.flag("--each-fault", each_fault_,
                 "A drill for each fault by itself, with pauses, and one table of all");
  arguments.flag("--markdown", markdown_, "That table for a page in Markdown");
  arguments.choice<drill::Use>(
      "--mode",
      {{"exclusive", drill::Use::exclusive},
       {"shared", drill::Use::shared},
       {"permits", drill::Use::permits},
       {"election", drill::Use::election},
       {"partitions", drill::Use::partitions}},
      plan_.use,
      "How the workers take a lock. shared: some write and the others read beside each other, and "
      "it is a writer that is frozen; permits: there is one permit less than workers, and what is "
      "read and replaced is that of its slot, NAME#slot; election: they stand for the lead, and it "
      "is the leader; partitions: they are members of a group that share out twice as many "
      "partitions, and what is read and replaced is that of a partition, NAME/number; default "
      "exclusive");
  arguments.number("--workers", workers_, "Processes for each lock", {2, 64},
                   "3, and 4 with --mode shared");
  arguments.number("--locks", locks_, "Locks or groups, each with its own workers", {1, 256},
                   written(plan_.locks) + ", and 2 with --mode partitions");
  arguments.duration("--ttl", ttl_, "The TTL of the leases", kTtls, "as short as the store allows");
  arguments.duration("--duration", duration_, "How long it runs", {100ms, 24h},
                     written(plan_.duration));
  arguments.number("--cycles", plan_.cycles,
                   "End earlier, after so many full cycles; 0 for no such limit",
                   {0, 1'000'000'000});
  arguments.number("--seed", plan_.seed, "Seed of the random choices", {0, 2'000'000'000});
  arguments.uses_store();
  arguments.ends_with(
      kDamage, "something stale was accepted, an update was lost or an invariant was broken");
  arguments.ends_with(kTooLittle, "too few faults happened to say anything");
  output_.declare(arguments);
  own_worker_.declare(arguments);
  arguments.example("leasehold drill", "ten seconds on the embedded store");
  arguments.example("leasehold drill --store all --fault all --each-fault --duration 5s",
                    "every store and every fault that it can have");
  arguments.example("leasehold drill --fence none", "the same without the fence: updates are lost");
  arguments.example("leasehold drill --html drill.html", "with a page that shows what happened");
  arguments.example("leasehold drill --mode permits",
                    "the holder of a permit is late, and the next one has its slot");
  arguments.example("leasehold drill --mode election", "the leader is late, and another one leads");
  arguments.example("leasehold drill --watch 'cat total' --fence file:total -- ./worker.sh",
                    "your own program as the worker");
}

Status Drill::check() {
  auto faults = TRY(parse_faults(faults_.value_or("pause")));
  plan_.store = store_.value_or("sqlite");
  plan_.fence = fence_.value_or("");
  plan_.faults = std::move(faults.faults);
  plan_.faults_where_possible = faults.all;
  const unsigned usual = plan_.use == drill::Use::shared ? 4 : plan_.workers;
  plan_.workers = workers_.value_or(usual);
  plan_.locks = locks_.value_or(plan_.use == drill::Use::partitions ? 2 : plan_.locks);
  plan_.ttl = ttl_;
  if (duration_) plan_.duration = *duration_;
  plan_.program = own_program();
  if (!drill::is_url(plan_.store)) do_without_machine_id();
  return {};
}

// Nothing that was asked for is left out silently.
Status Drill::check_own_worker() const {
  for (const auto& [name, given] :
       {std::pair("--workers", workers_.has_value()), std::pair("--locks", locks_.has_value()),
        std::pair("--duration", duration_.has_value()), std::pair("--each-fault", each_fault_),
        std::pair("--markdown", markdown_),
        std::pair("--mode", plan_.use != drill::Use::exclusive)}) {
    if (!given) continue;
    return fail(ErrorCode::invalid,
                std::string(name) +
                    " does not go with a program of your own: such a drill is one, on one lock, "
                    "with as many workers as it takes, and ends after --cycles");
  }
  return {};
}

template <class Run>
Result<drill::Drilled> watched(const std::string& whole, Run run) {
  Signals signals;
  ProgressLine line;
  return run(
      drill::Hooks{.wake = signals.fd(),
                   .interrupted = [&signals] { return signals.take_end_request(); },
                   .progress = [&](const auto& progress) { line.draw(told(progress, whole)); }});
}

Result<drill::Drilled> Drill::run(const drill::Plan& plan) {
  const auto whole = std::chrono::ceil<std::chrono::seconds>(plan.duration);
  return watched(" of " + std::to_string(whole.count()) + " s",
                 [&](const drill::Hooks& hooks) { return drill::run_drill(plan, hooks); });
}

Result<drill::Drilled> Drill::run_own_worker() const {
  const auto plan = TRY(own_worker_.plan(plan_, faults_));
  return watched(" s",
                 [&](const drill::Hooks& hooks) { return drill::drill_user_program(plan, hooks); });
}

Ending Drill::execute() {
  if (auto ok = check(); !ok) return report(ok.error());
  const Status fits = own_worker_.chosen() ? check_own_worker() : own_worker_.check_not_chosen();
  if (!fits) return report(fits.error());
  register_stores();
  if (auto ok = output_.open(); !ok) return report(ok.error());
  const std::string began = rfc3339(std::chrono::system_clock::now());
  const auto tell = [&](Result<drill::Drilled> drilled) -> Ending {
    if (!drilled) return report(drilled.error());
    drilled->outcome.began = began;
    drilled->outcome.version = LEASEHOLD_VERSION;
    drilled->outcome.worker = own_worker_.command_line();
    return output_.tell(drilled->outcome, drilled->history);
  };
  if (own_worker_.chosen()) return tell(run_own_worker());
  if (plan_.store == "all" || each_fault_ || markdown_) {
    if (output_.is_for_one()) {
      return report(Error(ErrorCode::invalid,
                          "--json, --junit, --html, --history and --details tell of one drill, "
                          "not of several"));
    }
    return tell_drills(drills_of(plan_, each_fault_), run, markdown_);
  }
  return tell(run(plan_));
}

}  // namespace

SubcommandEntry drill_command() {
  return {"drill", "Freeze real holders past their leases, and see what the fence does",
          make<Drill>};
}

}  // namespace leasehold::cli
