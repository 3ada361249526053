#include "arguments.h"
#include "output.h"
#include "program.h"
#include "subcommand.h"
#include "subcommands.h"

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
