// The whole command line: all subcommands and which one was chosen.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/command/arguments.h"
#include "cli/command/subcommand.h"

namespace leasehold::cli {

class Program {
 public:
  // `arguments` without the program's name. If the first one names a subcommand, only that one is
  // made: a wrapper around many short commands should start quickly.
  explicit Program(std::vector<std::string> arguments);

  [[nodiscard]] Result<CommandLine::Parsed> parse();

  // What was chosen; after a successful parse. Throws if it ends as it has not told that it may,
  // except in a build without assertions.
  Ending execute();

  CommandDoc document() const { return line_.document(); }

 private:
  struct Declared {
    Arguments* arguments;
    std::unique_ptr<Subcommand> command;
  };
  void declare(const SubcommandEntry& entry);

  std::vector<std::string> arguments_;
  CommandLine line_;
  std::vector<Declared> declared_;
  bool left_out_ = false;  // the one that is named is not in this build
};

// Every subcommand that is not hidden, for the manual page and the completions.
CommandDoc document_program();

// "leasehold 0.1.0\n"
std::string version_line();

}  // namespace leasehold::cli
