#include "cli/command/arguments.h"
#include "cli/command/exit_status.h"
#include "cli/command/output.h"
#include "cli/command/store_choice.h"
#include "cli/command/subcommand.h"
#include "cli/doctor/report.h"
#include "leasehold/diagnosis.h"
#include "leasehold/registry.h"
#include "leasehold/stores.h"

namespace leasehold::cli {
namespace {

using namespace std::chrono_literals;

Severity severity_of(const std::string& name) {
  if (name == "danger") return Severity::danger;
  return name == "unseen" ? Severity::unseen : Severity::warning;
}

class Doctor final : public Subcommand {
 public:
  void declare(Arguments& arguments) override {
    arguments.description(
        "Looks at the live server or file behind a store, and at a fence, for what makes a lock "
        "lie: settings that forget, servers that fail over, clocks that are moved, versions with "
        "known faults. Each finding says what was seen, what follows and what mends it. What could "
        "not be looked at is 'unseen', and never taken for ok. Nothing is changed.");
    declare_store(arguments, store_);
    arguments.option("--fence", "URL", fence_,
                     "The resource whose fence to look at as well, as in "
                     "sqlite:/var/lib/app/app.db");
    arguments.duration("--ttl", ttl_, "The TTL of the leases, 100ms to 24h; default 30s",
                       "from 100 ms to 24 h");
    arguments.duration("--within", within_,
                       "How long to look, 100ms to 10m; default 10s. Checks not finished then "
                       "are unseen",
                       "from 100 ms to 10 m");
    arguments.choice("--fail-on", {"warning", "danger", "unseen"}, fail_on_,
                     "Exit with status 78 from this severity on: danger, warning (default), or "
                     "unseen, which also fails for what could not be looked at");
    arguments.flag("--json", json_, "For programs: one JSON object");
    arguments.example("leasehold doctor --store redis://cache:6379", "is that a place for locks?");
    arguments.example(
        "leasehold doctor --store etcd://e1,e2,e3 --fence postgres://app@db/shop --json",
        "the store, the fence and whether they belong together");
  }

  int execute() override {
    if (is_not_there_yet(store_)) return report(not_there_yet());
    const auto store = chosen_store(store_);
    if (!store) return report(store.error());
    register_stores();
    const auto found = diagnose(Registry::standard(), *store, fence_,
                                {.ttl = ttl_, .within = within_, .stop = {}});
    // With a fence it may be the fence that went wrong.
    if (!found) return report(fence_ ? found.error() : with_source(store_, found.error()));
    const int printed = print(json_ ? doctor_json(*found) : doctor_text(*found));
    if (printed != 0) return printed;
    return found->worst() >= severity_of(fail_on_) ? kExitFindings : 0;
  }

 private:
  std::optional<std::string> store_;
  std::optional<std::string> fence_;
  Millis ttl_ = 30s;
  Millis within_ = 10s;
  std::string fail_on_ = "warning";
  bool json_ = false;
};

}  // namespace

Commands doctor_commands() {
  static constexpr SubcommandEntry kAll[] = {
      {"doctor", "Find out what makes a live store's locks lie", make<Doctor>}};
  return kAll;
}

}  // namespace leasehold::cli
