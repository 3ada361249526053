#include "cli/command/arguments.h"
#include "cli/command/output.h"
#include "cli/command/subcommand.h"
#include "cli/program/program.h"

namespace leasehold::cli {
namespace {

class Version final : public Subcommand {
 public:
  void declare(Arguments& arguments) override {
    arguments.example("leasehold version", "print the version");
  }
  Ending execute() override { return print(version_line()); }
};

}  // namespace

SubcommandEntry version_command() {
  return {"version", "Print the version", make<Version>};
}

}  // namespace leasehold::cli
