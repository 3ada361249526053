#include <unistd.h>

#include <utility>

#include "cli/command/arguments.h"
#include "cli/command/output.h"
#include "cli/command/signals.h"
#include "cli/command/store_choice.h"
#include "cli/command/subcommand.h"
#include "cli/command/url_help.h"
#include "cli/locks/json.h"
#include "cli/locks/live_table.h"
#include "cli/locks/lock_table.h"
#include "cli/locks/news.h"

namespace leasehold::cli {
namespace {

class Ls final : public Subcommand {
 public:
  void declare(Arguments& arguments) override {
    arguments.optional_positional("PREFIX", prefix_, "Only locks whose name begins so");
    arguments.flag("--held", held_, "Only those that somebody holds, or that are kept");
    arguments.flag("--watch", watch_,
                   "Go on until a signal comes: on a terminal with the table of those that are "
                   "held, else with a line for each change, as 'leasehold watch' prints them");
    declare_store(arguments, store_);
    arguments.flag("--json", json_, "For programs: one JSON object; with --watch one on each line");
    arguments.description(
        "On a terminal that is too narrow, long names, holders and notes are shown without their "
        "middle.");
    arguments.ends_with(ExitStatus::cancelled, "with --watch: a signal came");
    arguments.example("leasehold ls", "a table of all locks");
    arguments.example("leasehold ls invoice/ --held", "who is at work on invoices");
    arguments.example("leasehold ls gpu --watch", "the same as it changes");
    arguments.example("leasehold ls --json | jq -r '.locks[].holder.held_since'",
                      "since when they are held, for a program; docs/operations.md has the fields");
  }

  Ending execute() override {
    if (const auto ok = check_prefix(); !ok) return report(ok.error());
    if (watch_) return watch();
    if (is_not_there_yet(store_)) return tell(std::nullopt, {});
    auto client = open_existing_store(store_);
    if (!client) return report(client.error());
    auto locks = client->list();
    if (!locks) return report(locks.error());
    std::erase_if(*locks, [this](const LockStatus& lock) { return !wanted(lock); });
    return tell(client->store(), *locks);
  }

 private:
  // Nobody finds a lock whose name begins with the URL of a store.
  Status check_prefix() const {
    if (!prefix_) return {};
    if (can_be_used(*prefix_, kStoreUse)) {
      return fail(ErrorCode::invalid,
                  "'" + shown(*prefix_) +
                      "' was not expected; a store is named with an option: --store " +
                      shown(*prefix_));
    }
    const auto name = chosen_lock(*prefix_);
    return name ? Status{} : fail(name.error());
  }

  Ending watch() const {
    Signals signals;
    News news;
    auto client = open_to_watch(store_);
    if (!client) return report(client.error());
    const auto watching =
        client->watch_prefix(prefix_.value_or(""), [&news](const auto& now) { news.add(now); });
    if (!watching) return report(watching.error());
    if (json_ || isatty(STDOUT_FILENO) == 0) {
      return follow(signals, news, [this](const News::Item& item) { return tell_lines(item); });
    }
    LiveTable table(client->store());
    return follow(
        signals, news, [&](const News::Item& item) { return table.take(item); },
        [&] { return table.draw(); });
  }

  std::optional<Ending> tell_lines(News::Item item) const {
    if (item) std::erase_if(*item, [this](const LockStatus& lock) { return !wanted(lock); });
    return tell_as_lines(item, json_);
  }

  bool wanted(const LockStatus& lock) const {
    if (held_ && lock.holders.empty()) return false;
    return lock.lock.str().starts_with(prefix_.value_or(""));
  }

  ExitStatus tell(const std::optional<StoreTraits>& store,
                  const std::vector<LockStatus>& locks) const {
    if (json_) return print(locks_json(store, locks));
    return print(lock_table(store, locks, Columns::all));
  }

  std::optional<std::string> prefix_;
  bool held_ = false;
  bool watch_ = false;
  std::optional<std::string> store_;
  bool json_ = false;
};

}  // namespace

SubcommandEntry ls_command() {
  return {"ls", "List the locks of a store", make<Ls>};
}

}  // namespace leasehold::cli
