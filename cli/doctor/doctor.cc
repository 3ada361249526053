#include "cli/command/arguments.h"
#include "cli/command/output.h"
#include "cli/command/store_choice.h"
#include "cli/command/subcommand.h"
#include "cli/command/url_help.h"
#include "cli/doctor/report.h"
#include "leasehold/diagnosis.h"
#include "leasehold/registry.h"
#include "leasehold/stores.h"

namespace leasehold::cli {
namespace {

using namespace std::chrono_literals;

constexpr ExitStatus kFindings{78};

class Doctor final : public Subcommand {
 public:
  void declare(Arguments& arguments) override {
    arguments.description(
        "Looks at the live server or file behind a store, and at a fence, for what makes a lock "
        "unsafe: settings that forget, servers that fail over, clocks that are moved, versions "
        "with "
        "known faults. Each finding says what was seen, what follows and what mends it. What could "
        "not be looked at is 'unseen', and never taken for ok. Nothing is changed.");
    declare_store(arguments, store_);
    arguments.option("--fence", "URL", fence_,
                     "The resource whose fence to look at as well: " + example_urls(kFenceOffer),
                     url_beginnings(kFenceOffer));
    arguments.duration("--ttl", ttl_, "The TTL of the leases", kTtls);
    arguments.duration("--timeout", timeout_,
                       "How long to look. Checks not finished then are unseen", {100ms, 10min});
    arguments.choice<Severity>("--fail-on",
                               {{"warning", Severity::warning},
                                {"danger", Severity::danger},
                                {"unseen", Severity::unseen}},
                               fail_on_,
                               "Exit with status 78 from this severity on: danger, warning "
                               "(default), or unseen, which also fails for what could not be "
                               "looked at");
    arguments.ends_with(kFindings, "it found something at least as bad as --fail-on says");
    arguments.flag("--json", json_, "For programs: one JSON object");
    arguments.example("leasehold doctor --store redis://cache:6379", "are locks safe there?");
    arguments.example(
        "leasehold doctor --store etcd://e1,e2,e3 --fence postgres://app@db/shop --json",
        "the store, the fence and whether they belong together");
  }

  Ending execute() override {
    if (is_not_there_yet(store_)) return report(not_there_yet());
    const auto store = chosen_store(store_);
    if (!store) return report(store.error());
    register_stores();
    const auto found = diagnose(Registry::standard(), *store, fence_,
                                {.ttl = ttl_, .timeout = timeout_, .stop = {}});
    // With a fence it may be the fence that went wrong.
    if (!found) return report(fence_ ? found.error() : with_source(store_, found.error()));
    const ExitStatus printed = print(json_ ? doctor_json(*found) : doctor_text(*found));
    if (printed != ExitStatus::done) return printed;
    return found->worst() >= fail_on_ ? kFindings : ExitStatus::done;
  }

 private:
  std::optional<std::string> store_;
  std::optional<std::string> fence_;
  Millis ttl_ = 30s;
  Millis timeout_ = 10s;
  Severity fail_on_ = Severity::warning;
  bool json_ = false;
};

}  // namespace

SubcommandEntry doctor_command() {
  return {"doctor", "Check a live store for what makes its locks unsafe", make<Doctor>};
}

}  // namespace leasehold::cli
