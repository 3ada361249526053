#include "cli/command/arguments.h"
#include "cli/command/exit_status.h"
#include "cli/command/output.h"
#include "cli/command/store_choice.h"
#include "cli/command/subcommand.h"
#include "cli/locks/commands.h"

namespace leasehold::cli {
namespace {

class RotateLineage final : public Subcommand {
 public:
  void declare(Arguments& arguments) override {
    arguments.description(
        "After a store was restored from a backup it would give out token numbers a second time. "
        "This begins a new lineage: every fence refuses the store's tokens until 'leasehold fence "
        "adopt' lets the new lineage in. Stop the programs that use the store first.");
    arguments.flag("--force", force_, "Really begin a new lineage");
    declare_store(arguments, store_);
    arguments.example("leasehold rotate-lineage --force", "after a restore from a backup");
  }

  int execute() override {
    if (!force_) {
      note(
          "rotate-lineage makes every fence refuse this store's tokens until it adopts the new "
          "lineage; if that is what you want, say --force");
      return kExitUsage;
    }
    if (is_not_there_yet(store_)) return report(not_there_yet());
    auto client = open_existing_store(store_);
    if (!client) return report(client.error());
    const auto lineage = client->rotate_lineage();
    if (!lineage) return report(lineage.error());
    return print("the lineage of " + client->store().address + " is now " + lineage->hex() +
                 "; let it in at each fence: leasehold fence adopt URL RESOURCE --lineage " +
                 lineage->hex() + "/LOCK --at-least 1\n");
  }

 private:
  std::optional<std::string> store_;
  bool force_ = false;
};

}  // namespace

std::unique_ptr<Subcommand> make_rotate_lineage() {
  return std::make_unique<RotateLineage>();
}

}  // namespace leasehold::cli
