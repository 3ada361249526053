#include <algorithm>
#include <utility>

#include "cli/command/arguments.h"
#include "cli/command/duration.h"
#include "cli/command/output.h"
#include "cli/command/store_choice.h"
#include "cli/command/subcommand.h"
#include "cli/command/url_help.h"
#include "cli/locks/json.h"

namespace leasehold::cli {
namespace {

std::string and_more(std::ptrdiff_t count) {
  return count > 0 ? " and " + std::to_string(count) + " more" : "";
}

bool has_note(const LockStatus::Holder& holder) {
  return !holder.note.empty();
}

// Of the holder that the row names; how many of the others have one too.
std::string notes_of(const LockStatus& lock) {
  if (lock.holders.empty()) return "-";
  const std::string& first = lock.holders.front().note;
  return (first.empty() ? "-" : first) +
         and_more(std::count_if(lock.holders.begin() + 1, lock.holders.end(), has_note));
}

std::vector<Table::Cell> row_of(const StoreTraits& store, const LockStatus& lock) {
  const std::string state = state_of(lock);
  const Colour colour = state == "free"   ? Colour::dim
                        : state == "kept" ? Colour::yellow
                                          : Colour::green;
  const std::string use = use_of(lock).value_or(state);
  const std::string waiters = store.queues ? std::to_string(lock.waiters.size()) : "-";
  if (lock.holders.empty()) {
    const std::string token = lock.last_token ? std::to_string(lock.last_token->value()) : "-";
    return {{pasteable(lock.lock.str())}, {use, colour}, {"-"}, {token}, {"-"}, {"-"}, {waiters}};
  }
  const LockStatus::Holder& holder = lock.holders.front();
  return {{pasteable(lock.lock.str())},
          {use, colour},
          {holder.owner + and_more(std::ssize(lock.holders) - 1)},
          {holder.foreign ? "-" : std::to_string(holder.token.value())},
          {holder.foreign ? "-" : format_duration(holder.held_for)},
          {remaining_of(holder).value_or("-")},
          {waiters}};
}

class Ls final : public Subcommand {
 public:
  void declare(Arguments& arguments) override {
    arguments.optional_positional("PREFIX", prefix_, "Only locks whose name begins so");
    arguments.flag("--held", held_, "Only those that somebody holds, or that are kept");
    declare_store(arguments, store_);
    arguments.flag("--json", json_, "For programs: one JSON object");
    arguments.description(
        "On a terminal that is too narrow, long names, holders and notes are shown without their "
        "middle.");
    arguments.example("leasehold ls", "a table of all locks");
    arguments.example("leasehold ls invoice/ --held", "who is at work on invoices");
    arguments.example("leasehold ls --json | jq -r '.locks[].holder.held_since'",
                      "since when they are held, for a program; docs/operations.md has the fields");
  }

  Ending execute() override {
    if (const auto ok = check_prefix(); !ok) return report(ok.error());
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

  bool wanted(const LockStatus& lock) const {
    if (held_ && lock.holders.empty()) return false;
    return lock.lock.str().starts_with(prefix_.value_or(""));
  }

  ExitStatus tell(const std::optional<StoreTraits>& store,
                  const std::vector<LockStatus>& locks) const {
    if (json_) return print(locks_json(store, locks));
    Table table;
    table.may_shorten(0);
    table.may_shorten(2);
    std::vector<Table::Cell> titles = {{"NAME", Colour::bold},     {"STATE", Colour::bold},
                                       {"HOLDER", Colour::bold},   {"TOKEN", Colour::bold},
                                       {"HELD FOR", Colour::bold}, {"REMAINING", Colour::bold},
                                       {"WAITERS", Colour::bold}};
    const bool noted = std::ranges::any_of(
        locks, [](const LockStatus& lock) { return std::ranges::any_of(lock.holders, has_note); });
    if (noted) {
      table.may_shorten(titles.size());
      titles.push_back({"NOTE", Colour::bold});
    }
    table.add(std::move(titles));
    for (const LockStatus& lock : locks) {
      auto row = row_of(*store, lock);
      if (noted) row.push_back({notes_of(lock)});
      table.add(std::move(row));
    }
    return print(table.str());
  }

  std::optional<std::string> prefix_;
  bool held_ = false;
  std::optional<std::string> store_;
  bool json_ = false;
};

}  // namespace

SubcommandEntry ls_command() {
  return {"ls", "List the locks of a store", make<Ls>};
}

}  // namespace leasehold::cli
