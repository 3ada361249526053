#include "cli/command/arguments.h"
#include "cli/command/lease_options.h"
#include "cli/command/output.h"
#include "cli/command/store_choice.h"
#include "cli/command/subcommand.h"

namespace leasehold::cli {
namespace {

class Permits final : public Subcommand {
 public:
  void declare(Arguments& arguments) override {
    arguments.description(
        "A lock with N permits has up to N holders at the same time, each in a slot of its own "
        "from 0 on. The first who asks for one says how many there are, and that holds as long as "
        "the lock is in use. Set here, the number stays, and others are refused.");
    arguments.uses_store();
    arguments.example("leasehold permits set gpu 4", "four at the same time, from now on");
    declare_set(arguments.subcommand("set", "Say how many permits a lock has"));
    declare_clear(arguments.subcommand("clear", "Forget how many were set"));
  }

  Ending execute() override {
    const auto name = chosen_lock(name_);
    if (!name) return report(name.error());
    std::optional<std::int64_t> permits;
    if (set_->chosen()) {
      auto number = parse_number(count_, kPermitCounts);
      if (!number) return report(Error(ErrorCode::invalid, "N: " + number.error().message));
      permits = *number;
    }
    if (!permits && is_not_there_yet(store_)) return ExitStatus::done;
    auto client = permits ? open_store(store_) : open_existing_store(store_);
    if (!client) return report(client.error());
    const auto done = client->set_permits(*name, permits);
    if (!done) return report(done.error());
    return ExitStatus::done;
  }

 private:
  void declare_name(Arguments& arguments) {
    arguments.positional("NAME", name_, "The lock's name");
    declare_store(arguments, store_);
    arguments.also_ends_with(ExitStatus::wrong_input, "the lock is in use without permits");
  }

  void declare_set(Arguments& arguments) {
    set_ = &arguments;
    arguments.description(
        "More are given out at once, fewer as permits come back: nobody loses one.");
    declare_name(arguments);
    arguments.positional("N", count_, "How many, from 1 to 10000");
    arguments.example("leasehold permits set gpu 4", "from now on it has four");
  }

  void declare_clear(Arguments& arguments) {
    declare_name(arguments);
    arguments.example("leasehold permits clear gpu", "the next who asks says how many");
  }

  Arguments* set_ = nullptr;
  std::string name_;
  std::string count_;
  std::optional<std::string> store_;
};

}  // namespace

SubcommandEntry permits_command() {
  return {"permits", "Say how many may hold a lock at the same time", make<Permits>};
}

}  // namespace leasehold::cli
