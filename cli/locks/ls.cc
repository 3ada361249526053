#include "cli/command/arguments.h"
#include "cli/command/duration.h"
#include "cli/command/output.h"
#include "cli/command/store_choice.h"
#include "cli/command/subcommand.h"
#include "cli/locks/json.h"

namespace leasehold::cli {
namespace {

std::vector<Table::Cell> row_of(const StoreTraits& store, const LockStatus& lock) {
  const std::string state = state_of(lock);
  const Colour colour = !lock.holder        ? Colour::dim
                        : lock.holder->kept ? Colour::yellow
                                            : Colour::green;
  const std::string waiters = store.queues ? std::to_string(lock.waiters.size()) : "-";
  if (!lock.holder) {
    const std::string token = lock.last_token ? std::to_string(lock.last_token->value()) : "-";
    return {{lock.lock.str()}, {state, colour}, {"-"}, {token}, {"-"}, {waiters}};
  }
  const LockStatus::Holder& holder = *lock.holder;
  return {{lock.lock.str()},
          {state, colour},
          {holder.owner},
          {holder.foreign ? "-" : std::to_string(holder.token.value())},
          {holder.foreign ? "-" : format_duration(holder.remaining)},
          {waiters}};
}

class Ls final : public Subcommand {
 public:
  void declare(Arguments& arguments) override {
    declare_store(arguments, store_);
    arguments.flag("--json", json_, "For programs: one JSON object");
    arguments.example("leasehold ls", "a table of all locks");
    arguments.example("leasehold ls --json | jq '.locks[] | select(.state == \"held\")'",
                      "the held ones, for a program");
  }

  Ending execute() override {
    if (is_not_there_yet(store_)) return tell(std::nullopt, {});
    auto client = open_existing_store(store_);
    if (!client) return report(client.error());
    const auto locks = client->list();
    if (!locks) return report(locks.error());
    return tell(client->store(), *locks);
  }

 private:
  ExitStatus tell(const std::optional<StoreTraits>& store,
                  const std::vector<LockStatus>& locks) const {
    if (json_) return print(locks_json(store, locks));
    Table table;
    table.add({{"NAME", Colour::bold},
               {"STATE", Colour::bold},
               {"HOLDER", Colour::bold},
               {"TOKEN", Colour::bold},
               {"REMAINING", Colour::bold},
               {"WAITERS", Colour::bold}});
    for (const LockStatus& lock : locks) table.add(row_of(*store, lock));
    return print(table.str());
  }

  std::optional<std::string> store_;
  bool json_ = false;
};

}  // namespace

SubcommandEntry ls_command() {
  return {"ls", "List all locks of a store", make<Ls>};
}

}  // namespace leasehold::cli
