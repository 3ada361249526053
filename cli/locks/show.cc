#include "cli/command/arguments.h"
#include "cli/command/duration.h"
#include "cli/command/output.h"
#include "cli/command/store_choice.h"
#include "cli/command/subcommand.h"
#include "cli/locks/json.h"

namespace leasehold::cli {
namespace {

std::string state_text(const LockStatus& lock) {
  const std::string state = state_of(lock);
  if (const auto use = use_of(lock)) return state + ", " + *use;
  return state == "kept" ? "kept: the holder has finished, and nobody gets it yet" : state;
}

std::string page(const std::optional<StoreTraits>& store, const LockStatus& lock) {
  Table table;
  const auto line = [&](std::string key, std::string value) {
    table.add({{std::move(key), Colour::bold}, {std::move(value)}});
  };
  line("lock", pasteable(lock.lock.str()));
  line("state", state_text(lock));
  for (const LockStatus::Holder& holder : lock.holders) {
    line("holder", holder.owner);
    line("request", holder.request.hex());
    if (holder.slot) line("slot", std::to_string(holder.slot->number));
    if (!holder.note.empty()) line("note", holder.note);
    if (!holder.foreign) {
      line("token", std::to_string(holder.token.value()));
      line("held for", format_duration(holder.held_for));
    }
    if (auto remaining = remaining_of(holder)) line("remaining", std::move(*remaining));
  }
  if (lock.holders.empty() && lock.last_token) {
    line("last token", std::to_string(lock.last_token->value()));
  }
  if (lock.store) line("lineage", pasteable(Lineage{*lock.store, lock.lock}.str()));
  if (!store) {
    line("store", "the default one, which is not there yet");
    return table.str();
  }
  line("waiters", store->queues ? std::to_string(lock.waiters.size()) : "unknown: it has no queue");
  for (std::size_t i = 0; i < lock.waiters.size(); ++i) {
    const WaiterStatus& waiter = lock.waiters[i];
    const std::string mode = waiter.mode.is_exclusive() ? "" : " (" + to_string(waiter.mode) + ")";
    line("  " + std::to_string(i + 1) + ".", waiter.owner + mode);
  }
  if (!lock.known_as.empty()) line("known as", lock.known_as);
  line("store", store->address);
  line("guarantee", std::string(to_string(store->guarantee)));
  if (!store->why.empty()) line("  because", store->why);
  if (!store->instead.empty()) line("  for more", store->instead);
  return table.str();
}

class Show final : public Subcommand {
 public:
  void declare(Arguments& arguments) override {
    arguments.positional("NAME", name_, "The lock's name");
    declare_store(arguments, store_);
    arguments.flag("--json", json_, "For programs: one JSON object");
    arguments.example("leasehold show backup", "who holds it, who waits, how good the store is");
  }

  Ending execute() override {
    const auto name = LockName::parse(name_);
    if (!name) return report(name.error());
    if (is_not_there_yet(store_)) return tell(std::nullopt, {*name, {}, {}, {}, {}});
    auto client = open_existing_store(store_);
    if (!client) return report(client.error());
    const auto lock = client->inspect(*name);
    if (!lock) return report(lock.error());
    return tell(client->store(), *lock);
  }

 private:
  ExitStatus tell(const std::optional<StoreTraits>& store, const LockStatus& lock) const {
    return print(json_ ? lock_json(store, lock) : page(store, lock));
  }

  std::string name_;
  std::optional<std::string> store_;
  bool json_ = false;
};

}  // namespace

SubcommandEntry show_command() {
  return {"show", "Show everything about one lock", make<Show>};
}

}  // namespace leasehold::cli
