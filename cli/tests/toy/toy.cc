// A command as somebody would add it: this folder, and its name in the list of families.
#include "cli/command/arguments.h"
#include "cli/command/output.h"
#include "cli/command/subcommand.h"

namespace leasehold::cli {
namespace {

constexpr ExitStatus kBroken{9};

class Toy final : public Subcommand {
 public:
  void declare(Arguments& arguments) override {
    arguments.number("--times", times_, "How often to play", {1, 3});
    arguments.flag("--break", break_, "Break it");
    arguments.flag("--surprise", surprise_, "End as it has not declared");
    arguments.ends_with(kBroken, "the toy is broken");
    arguments.example("leasehold toy --times 2", "play");
  }

  Ending execute() override {
    if (break_) return kBroken;
    if (surprise_) return ExitStatus{8};
    std::string text;
    for (int i = 0; i < times_; ++i) text += "beep\n";
    return print(text);
  }

 private:
  int times_ = 1;
  bool break_ = false;
  bool surprise_ = false;
};

}  // namespace

SubcommandEntry toy_command() {
  return {"toy", "Play", make<Toy>};
}

}  // namespace leasehold::cli
