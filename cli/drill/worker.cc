// One worker process of 'leasehold drill', which starts it.
#include <cstdlib>

#include "cli/command/arguments.h"
#include "cli/command/output.h"
#include "cli/command/subcommand.h"
#include "cli/drill/commands.h"
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
    arguments.choice("--fencing", {"token", "claim", "none"}, fencing_, "How it is guarded");
    arguments.required_option("--lock", "NAME", plan_.resource.name, "The lock");
    arguments.required_option("--name", "NAME", plan_.name, "The worker");
    arguments.required_option("--history", "FILE", plan_.history, "Where to write what it does");
    arguments.duration("--ttl", plan_.ttl, "Of its leases");
    arguments.number("--number", 1, 1'000'000'000, number_, "Which worker it is");
    arguments.example("leasehold drill", "starts many of them");
  }

  int execute() override {
    if (auto ok = take_urls(); !ok) return report(ok.error());
    plan_.resource.fencing = fencing_ == "token"   ? drill::Fencing::token
                             : fencing_ == "claim" ? drill::Fencing::claim
                                                   : drill::Fencing::none;
    plan_.first_value = static_cast<std::uint64_t>(number_) << kValueBits;
    register_stores();
    if (auto done = drill::run_worker(plan_); !done) return report(done.error());
    return 0;
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
  std::string fencing_ = "token";
  int number_ = 1;
};

}  // namespace

std::unique_ptr<Subcommand> make_drill_worker() {
  return std::make_unique<DrillWorker>();
}

}  // namespace leasehold::cli
