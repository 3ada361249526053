#include "cli/command/arguments.h"
#include "cli/command/output.h"
#include "cli/command/store_choice.h"
#include "cli/command/subcommand.h"

namespace leasehold::cli {
namespace {

class RotateStoreId final : public Subcommand {
 public:
  void declare(Arguments& arguments) override {
    arguments.description(
        "After a store was restored from a backup it would give out token numbers a second time. "
        "This gives it a new store id, and so a new lineage to each of its locks: every fence "
        "refuses the store's tokens until 'leasehold fence adopt' lets the new lineage in. Stop "
        "the "
        "programs that use the store first.");
    arguments.flag("--force", force_, "Really change the store id");
    declare_store(arguments, store_);
    arguments.example("leasehold rotate-store-id --force", "after a restore from a backup");
  }

  Ending execute() override {
    if (!force_) {
      note(
          "rotate-store-id makes every fence refuse this store's tokens until it adopts the new "
          "lineage; if that is what you want, add --force");
      return ExitStatus::wrong_input;
    }
    if (is_not_there_yet(store_)) return report(not_there_yet());
    auto client = open_existing_store(store_);
    if (!client) return report(client.error());
    const auto id = client->rotate_store_id();
    if (!id) return report(id.error());
    return print("the store id of " + client->store().address + " is now " + id->hex() +
                 "; let it in at each fence: leasehold fence adopt URL RESOURCE --lineage " +
                 id->hex() + "/LOCK --at-least 1\n");
  }

 private:
  std::optional<std::string> store_;
  bool force_ = false;
};

}  // namespace

SubcommandEntry rotate_store_id_command() {
  return {"rotate-store-id", "Give a store a new id after a restore", make<RotateStoreId>};
}

}  // namespace leasehold::cli
