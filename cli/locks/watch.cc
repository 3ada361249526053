#include <optional>
#include <string>
#include <vector>

#include "cli/command/arguments.h"
#include "cli/command/output.h"
#include "cli/command/signals.h"
#include "cli/command/store_choice.h"
#include "cli/command/subcommand.h"
#include "cli/locks/news.h"
#include "kit/try.h"

namespace leasehold::cli {
namespace {

using namespace std::chrono_literals;

constexpr Range<Millis> kLooks{10ms, 1h};

class WatchLocks final : public Subcommand {
 public:
  void declare(Arguments& arguments) override {
    arguments.positional("NAME", name_, "The lock's name, or with --prefix how it begins");
    declare_store(arguments, store_);
    arguments.flag("--prefix", prefix_,
                   "All locks whose name begins with NAME; '' is every lock of the store");
    arguments.duration("--look-every", look_every_,
                       "How often to ask the store although it told nothing", kLooks,
                       "1s where the store tells changes by itself, else 250ms");
    arguments.flag("--json", json_, "For programs: one JSON object on each line");
    arguments.description(
        "Prints a line with the state of the lock, and one more whenever those who hold it have "
        "changed, until a signal comes. A line says so when the store cannot be seen, and another "
        "one has the state when it can be seen again. Between two looks a holder may come and go; "
        "then only its token is missing in the order.");
    arguments.ends_with(ExitStatus::cancelled, "a signal came");
    arguments.example("leasehold watch leader", "who holds it, now and from now on");
    arguments.example("leasehold watch invoice/ --prefix --json",
                      "the same of many, for a program");
  }

  Ending execute() override {
    Signals signals;
    News news;
    auto client = open_to_watch(store_);
    if (!client) return report(client.error());
    const auto watching = watch(*client, news);
    if (!watching) return report(watching.error());
    return follow(signals, news, [this](const auto& item) { return tell_as_lines(item, json_); });
  }

 private:
  Result<leasehold::Watch> watch(Client& client, News& news) const {
    const WatchOptions options{look_every_};
    if (prefix_) {
      return client.watch_prefix(
          name_, [&news](const auto& now) { news.add(now); }, options);
    }
    auto lock = TRY(chosen_lock(name_));
    return client.watch(
        lock,
        [&news](const Result<LockStatus>& now) {
          if (!now) return news.add(fail(now.error()));
          news.add(std::vector<LockStatus>{*now});
        },
        options);
  }

  std::string name_;
  std::optional<std::string> store_;
  bool prefix_ = false;
  std::optional<Millis> look_every_;
  bool json_ = false;
};

}  // namespace

SubcommandEntry watch_command() {
  return {"watch", "Tell who holds a lock, as it changes", make<WatchLocks>};
}

}  // namespace leasehold::cli
