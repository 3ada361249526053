#include "cli/command/arguments.h"
#include "cli/command/output.h"
#include "cli/command/subcommand.h"
#include "cli/command/url_help.h"
#include "leasehold/once_admin.h"
#include "leasehold/registry.h"
#include "leasehold/stores.h"

namespace leasehold::cli {
namespace {

class OnceCommand final : public Subcommand {
 public:
  void declare(Arguments& arguments) override {
    arguments.description(
        "Idempotency keys in your own database: work, key and result are one transaction, so that "
        "a repeat finds the result and does nothing. Once they are installed, programs in every "
        "language use them by plain SQL; docs/ways-not-to-lock.md says how.");
    arguments.uses_store();
    arguments.example("leasehold once install postgres://app@db/shop",
                      "create what the keys need; doing it again changes nothing");
    declare_install(arguments.subcommand("install", "Create what the keys need"));
    declare_forget(arguments.subcommand("forget", "Delete old results"));
  }

  Ending execute() override {
    if (!install_->chosen() && !older_than_) {
      note("say how old a result must be to be forgotten, as in --older-than 720h");
      return ExitStatus::wrong_input;
    }
    register_stores();
    const auto keys = Registry::standard().open<OnceAdmin>(url_);
    if (!keys) return report(keys.error());
    return install_->chosen() ? install(**keys) : forget(**keys);
  }

 private:
  void declare_url(Arguments& arguments) {
    arguments.positional("URL", url_,
                         "The database of the work: " + example_urls(OnceAdmin::kOffer),
                         url_beginnings(OnceAdmin::kOffer));
  }

  void declare_install(Arguments& arguments) {
    install_ = &arguments;
    declare_url(arguments);
    arguments.example("leasehold once install sqlite:/var/lib/app/app.db",
                      "create the table; doing it again changes nothing");
  }

  void declare_forget(Arguments& arguments) {
    arguments.description(
        "Keys are kept until they are forgotten. A key that is forgotten would run again: choose "
        "an age beyond the last possible repeat.");
    declare_url(arguments);
    arguments.duration("--older-than", older_than_, "How long ago it was stored, as in 720h");
    arguments.example("leasehold once forget postgres://app@db/shop --older-than 720h",
                      "nightly: nothing is repeated after 30 days");
  }

  static ExitStatus install(OnceAdmin& keys) {
    if (const auto done = keys.install(); !done) return report(done.error());
    return print("the idempotency keys are installed\n");
  }

  ExitStatus forget(OnceAdmin& keys) const {
    const auto gone =
        keys.forget_older_than(std::chrono::duration_cast<std::chrono::seconds>(*older_than_));
    if (!gone) return report(gone.error());
    return print("forgotten: " + std::to_string(*gone) + "\n");
  }

  Arguments* install_ = nullptr;
  std::string url_;
  std::optional<Millis> older_than_;
};

}  // namespace

SubcommandEntry once_command() {
  return {"once", "Manage the idempotency keys in a database", make<OnceCommand>};
}

}  // namespace leasehold::cli
