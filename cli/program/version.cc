#include "cli/command/arguments.h"
#include "cli/command/output.h"
#include "cli/command/subcommand.h"
#include "cli/program/commands.h"
#include "cli/program/program.h"

namespace leasehold::cli {
namespace {

class Version final : public Subcommand {
 public:
  void declare(Arguments& arguments) override {
    arguments.example("leasehold version", "print the version");
  }
  int execute() override { return print(version_line()); }
};

}  // namespace

std::unique_ptr<Subcommand> make_version() {
  return std::make_unique<Version>();
}

}  // namespace leasehold::cli
