#include "cli/program/program.h"

#include <algorithm>
#include <stdexcept>

namespace leasehold::cli {
namespace {

constexpr const char* kDescription = "Locks that end by themselves: leases, tokens and fences";

// `leasehold help run` is `leasehold run --help`.
std::vector<std::string> without_help_word(std::vector<std::string> arguments) {
  if (arguments.empty() || arguments.front() != "help") return arguments;
  arguments.erase(arguments.begin());
  arguments.emplace_back("--help");
  return arguments;
}

}  // namespace

Program::Program(std::vector<std::string> arguments)
    : arguments_(without_help_word(std::move(arguments))), line_("leasehold", kDescription) {
  Arguments& root = line_.root();
  root.description(
      "A lock with a timeout is a lease: it can end under a holder who is still working. Leasehold "
      "says how good a lock is, ends the command when its lease is lost, and gives it a token that "
      "lets the resource refuse late writers.");
  root.example("leasehold run backup -- /usr/local/bin/backup.sh",
               "run a job unless it runs already");
  root.example("leasehold ls", "see who holds what");

  const auto all = subcommands();
  const auto named = std::find_if(all.begin(), all.end(), [&](const SubcommandEntry& entry) {
    return !arguments_.empty() && arguments_.front() == entry.name;
  });
  left_out_ = named != all.end() && named->make == nullptr;
  for (const SubcommandEntry& entry : all) {
    if (entry.make == nullptr) continue;
    const bool wanted = named == all.end() ? !entry.hidden : &entry == &*named;
    if (wanted) declare(entry);
  }
}

void Program::declare(const SubcommandEntry& entry) {
  Arguments& arguments =
      line_.root().subcommand(std::string(entry.name), std::string(entry.summary));
  declared_.push_back({&arguments, entry.make()});
  declared_.back().command->declare(arguments);
}

Result<CommandLine::Parsed> Program::parse() {
  const bool known = declared_.size() == 1;
  const std::string first = arguments_.empty() ? "" : arguments_.front();
  if (left_out_) {
    return fail(ErrorCode::unsupported,
                "this build of Leasehold was made without '" + first + "'; make release has it");
  }
  if (known || line_.has_option(first)) return line_.parse(arguments_);
  return fail(first.starts_with('-') ? no_option(document(), first)
                                     : no_command(document(), first));
}

Ending Program::execute() {
  const auto chosen = std::find_if(declared_.begin(), declared_.end(),
                                   [](const Declared& one) { return one.arguments->chosen(); });
  const Ending ending = chosen->command->execute();  // the parser requires exactly one
#ifndef NDEBUG
  const auto status = static_cast<ExitStatus>(ending.number());
  if (ending.is_own() && !chosen->arguments->may_end_with(status)) {
    throw std::logic_error("exit status " + label(status) + " is not declared");
  }
#endif
  return ending;
}

CommandDoc document_program() {
  return Program({}).document();
}

std::string version_line() {
  return "leasehold " LEASEHOLD_VERSION "\n";
}

}  // namespace leasehold::cli
