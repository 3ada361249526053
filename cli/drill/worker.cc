// One worker process of 'leasehold drill', which starts it.
#include <cstdlib>

#include "cli/command/arguments.h"
#include "cli/command/output.h"
#include "cli/command/subcommand.h"
#include "drill/runner/worker.h"
#include "leasehold/stores.h"

namespace leasehold::cli {
namespace {

// Values of different workers never meet: the upper half names the worker.
constexpr int kValueBits = 32;

class DrillWorker final : public Subcommand {
 public:
  void declare(Arguments& arguments) override {
    arguments.description(
        "One worker of 'leasehold drill', which starts it and names the store and what it guards "
        "in "
        "the environment.");
    arguments.uses_store();
    arguments.choice<drill::Fencing>("--fencing",
                                     {{"token", drill::Fencing::token},
                                      {"claim", drill::Fencing::claim},
                                      {"none", drill::Fencing::none}},
                                     plan_.resource.fencing, "How it is guarded");
    arguments.required_option("--lock", "NAME", plan_.lock, "The lock or the group");
    arguments.choice<drill::Use>("--use",
                                 {{"exclusive", drill::Use::exclusive},
                                  {"shared", drill::Use::shared},
                                  {"permits", drill::Use::permits},
                                  {"election", drill::Use::election},
                                  {"partitions", drill::Use::partitions}},
                                 plan_.use,
                                 "What it is: it holds a lock, leads, or owns partitions");
    arguments.number("--partitions", plan_.partitions, "Of its group", {0, 10'000});
    arguments.number("--mode", mode_, "How it takes the lock, as Mode::code() has it",
                     {Mode::shared().code(), Mode::kMostPermits});
    arguments.required_option("--name", "NAME", plan_.name, "The worker");
    arguments.required_option("--history", "FILE", plan_.history, "Where to write what it does");
    arguments.duration("--ttl", plan_.ttl, "Of its leases");
    arguments.number("--number", number_, "Which worker it is", {1, 1'000'000'000});
    arguments.example("leasehold drill", "starts many of them");
  }

  Ending execute() override {
    if (auto ok = take_urls(); !ok) return report(ok.error());
    plan_.mode = Mode::from_code(mode_).value_or(Mode::exclusive());
    plan_.first_value = static_cast<std::uint64_t>(number_) << kValueBits;
    register_stores();
    const auto done = drill::run_worker(plan_);
    return done ? ExitStatus::done : report(done.error());
  }

 private:
  Status take_urls() {
    for (const auto& [variable, url] : {std::pair(drill::kStoreVariable, &plan_.store),
                                        std::pair(drill::kResourceVariable, &plan_.resource.url)}) {
      const char* value = std::getenv(variable);
      if (value == nullptr) {
        return fail(ErrorCode::invalid, std::string(variable) +
                                            " is not set: a worker is started "
                                            "by 'leasehold drill'");
      }
      *url = value;
    }
    return {};
  }

  drill::WorkerPlan plan_;
  std::int64_t mode_ = 0;
  int number_ = 1;
};

}  // namespace

SubcommandEntry drill_worker_command() {
  return {"drill-worker", "One worker of the drill", make<DrillWorker>, true};
}

}  // namespace leasehold::cli
