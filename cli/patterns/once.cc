#include "cli/command/arguments.h"
#include "cli/command/json.h"
#include "cli/command/once_run.h"
#include "cli/command/output.h"
#include "cli/command/store_choice.h"
#include "cli/command/subcommand.h"
#include "cli/command/url_help.h"
#include "leasehold/once_admin.h"
#include "leasehold/registry.h"
#include "leasehold/stores.h"

namespace leasehold::cli {
namespace {

// There is no such key.
constexpr ExitStatus kNoKey{1};

std::string words_of(const std::vector<std::string>& command) {
  std::string text;
  for (const std::string& word : command) text += (text.empty() ? "" : " ") + in_quotes(word);
  return text;
}

std::string page(const std::string& lock, const std::string& key,
                 const std::optional<OnceRun>& run) {
  Table table;
  const auto line = [&](std::string name, std::string value) {
    table.add({{std::move(name), Colour::bold}, {std::move(value)}});
  };
  line("lock", pasteable(lock));
  line("key", pasteable(key));
  line("exit status", run ? std::to_string(run->status) : "unknown: another program stored it");
  if (run) line("command", words_of(run->command));
  return table.str();
}

Json json_of(const std::string& lock, const std::string& key, const std::optional<OnceRun>& run) {
  return {{"lock", lock},
          {"key", key},
          {"status", run ? Json(run->status) : Json(nullptr)},
          {"command", run ? Json(run->command) : Json(nullptr)}};
}

class OnceCommand final : public Subcommand {
 public:
  void declare(Arguments& arguments) override {
    arguments.description(
        "Idempotency keys: what was done under one is not done again. ls, show and forget are for "
        "the keys of 'leasehold run --once', which are kept with the lock. install and sweep are "
        "for keys in your own database: work, key and result are one transaction, and programs in "
        "every language use them by plain SQL; docs/ways-not-to-lock.md says how.");
    arguments.uses_store();
    arguments.example("leasehold once ls invoices", "the keys of a lock");
    arguments.example("leasehold once install postgres://app@db/shop",
                      "create what the keys need; doing it again changes nothing");
    declare_ls(arguments.subcommand("ls", "List the keys of a lock"));
    declare_show(arguments.subcommand("show", "Show what was done under a key of a lock"));
    declare_forget(arguments.subcommand("forget", "Forget a key of a lock"));
    declare_install(arguments.subcommand("install", "Create what keys in a database need"));
    declare_sweep(arguments.subcommand("sweep", "Delete old results from a database"));
  }

  Ending execute() override {
    if (install_->chosen() || sweep_->chosen()) return in_database();
    const auto lock = chosen_lock(name_);
    if (!lock) return report(lock.error());
    if (is_not_there_yet(store_)) return ls_->chosen() ? tell_keys({}) : no_key();
    auto client = open_existing_store(store_);
    if (!client) return report(client.error());
    if (ls_->chosen()) return list(*client, *lock);
    return show_->chosen() ? show(*client, *lock) : forget(*client, *lock);
  }

 private:
  void declare_url(Arguments& arguments) {
    arguments.positional("URL", url_,
                         "The database of the work: " + example_urls(OnceAdmin::kOffer),
                         url_beginnings(OnceAdmin::kOffer));
  }

  void declare_lock(Arguments& arguments) {
    arguments.positional("NAME", name_, "The lock's name");
    declare_store(arguments, store_);
  }

  void declare_key(Arguments& arguments) {
    declare_lock(arguments);
    arguments.positional("KEY", key_, "The key, as given to 'leasehold run --once'");
    arguments.ends_with(kNoKey, "there is no such key");
  }

  void declare_ls(Arguments& arguments) {
    ls_ = &arguments;
    declare_lock(arguments);
    arguments.flag("--json", json_, "For programs: one JSON object");
    arguments.example("leasehold once ls invoices",
                      "one key per line, in the order of their bytes");
  }

  void declare_show(Arguments& arguments) {
    show_ = &arguments;
    declare_key(arguments);
    arguments.flag("--json", json_, "For programs: one JSON object");
    arguments.example("leasehold once show invoices 2026-11-15", "which command, and how it ended");
  }

  void declare_forget(Arguments& arguments) {
    arguments.description("The next 'leasehold run --once' with this key runs its command again.");
    declare_key(arguments);
    arguments.example("leasehold once forget invoices 2026-11-15", "let that day run again");
  }

  void declare_install(Arguments& arguments) {
    install_ = &arguments;
    declare_url(arguments);
    arguments.example("leasehold once install sqlite:/var/lib/app/app.db",
                      "create the table; doing it again changes nothing");
  }

  void declare_sweep(Arguments& arguments) {
    sweep_ = &arguments;
    arguments.description(
        "Keys are kept until they are forgotten. A key that is forgotten would run again: choose "
        "an age beyond the last possible repeat.");
    declare_url(arguments);
    arguments.duration("--older-than", older_than_, "How long ago it was stored, as in 720h");
    arguments.example("leasehold once sweep postgres://app@db/shop --older-than 720h",
                      "nightly: nothing is repeated after 30 days");
  }

  ExitStatus tell_keys(const std::vector<std::string>& keys) const {
    if (json_) return print(json_text({{"lock", name_}, {"keys", keys}}));
    std::string text;
    for (const std::string& key : keys) text += pasteable(key) + "\n";
    return print(text);
  }

  ExitStatus no_key() const {
    note("lock " + in_quotes(name_) + " has no key " + in_quotes(key_));
    return kNoKey;
  }

  ExitStatus list(Client& client, const LockName& lock) const {
    const auto keys = client.recorded_keys(lock);
    return keys ? tell_keys(*keys) : report(keys.error());
  }

  ExitStatus show(Client& client, const LockName& lock) const {
    const auto record = client.recall(lock, key_);
    if (!record) return report(record.error());
    if (!*record) return no_key();
    const auto run = run_in(**record);
    return print(json_ ? json_text(json_of(name_, key_, run)) : page(name_, key_, run));
  }

  ExitStatus forget(Client& client, const LockName& lock) const {
    const auto gone = client.forget(lock, key_);
    if (!gone) return report(gone.error());
    if (!*gone) return no_key();
    return print("forgotten: " + pasteable(key_) + "\n");
  }

  ExitStatus in_database() const {
    if (sweep_->chosen() && !older_than_) {
      note("say how old a result must be to be forgotten, as in --older-than 720h");
      return ExitStatus::wrong_input;
    }
    register_stores();
    const auto keys = Registry::standard().open<OnceAdmin>(url_);
    if (!keys) return report(keys.error());
    return install_->chosen() ? install(**keys) : sweep(**keys);
  }

  static ExitStatus install(OnceAdmin& keys) {
    if (const auto done = keys.install(); !done) return report(done.error());
    return print("the idempotency keys are installed\n");
  }

  ExitStatus sweep(OnceAdmin& keys) const {
    const auto gone =
        keys.forget_older_than(std::chrono::duration_cast<std::chrono::seconds>(*older_than_));
    if (!gone) return report(gone.error());
    return print("forgotten: " + std::to_string(*gone) + "\n");
  }

  Arguments* ls_ = nullptr;
  Arguments* show_ = nullptr;
  Arguments* install_ = nullptr;
  Arguments* sweep_ = nullptr;
  std::string name_;
  std::string key_;
  std::string url_;
  std::optional<std::string> store_;
  std::optional<Millis> older_than_;
  bool json_ = false;
};

}  // namespace

SubcommandEntry once_command() {
  return {"once", "List and forget what was done once, and prepare a database", make<OnceCommand>};
}

}  // namespace leasehold::cli
