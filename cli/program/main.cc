#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <exception>

#include "cli/command/arguments.h"
#include "cli/command/output.h"
#include "cli/command/subcommand.h"
#include "cli/program/help.h"
#include "cli/program/program.h"
#include "leasehold/process/io.h"

namespace leasehold::cli {
namespace {

// Started without the standard streams, a database file could become fd 1 and be written over. What
// takes their place is opened the wrong way round, so that using it fails as if it were closed.
void occupy_standard_streams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    const int the_wrong_way = fd == STDIN_FILENO ? O_WRONLY : O_RDONLY;
    if (fcntl(fd, F_GETFD) < 0) open("/dev/null", the_wrong_way | O_CLOEXEC);
  }
}

Ending run_program(const std::vector<std::string>& arguments) {
  Program program(arguments);
  if (arguments.empty()) {
    process::write_all(STDERR_FILENO, render_help(program.document()) + "\n");
    note("a command is missing");
    return ExitStatus::wrong_input;
  }
  auto parsed = program.parse();
  if (!parsed) return report(parsed.error());
  if (const auto* help = std::get_if<CommandLine::HelpWanted>(&*parsed)) {
    return print(render_help(help->of));
  }
  if (std::holds_alternative<CommandLine::VersionWanted>(*parsed)) return print(version_line());
  return program.execute();
}

}  // namespace
}  // namespace leasehold::cli

int main(int argc, char** argv) {
  using namespace leasehold::cli;
  occupy_standard_streams();
  try {
    return run_program(std::vector<std::string>(argv + std::min(argc, 1), argv + argc)).number();
  } catch (const std::exception& defect) {
    note(std::string("something that should not happen: ") + defect.what());
  } catch (...) {
    note("something that should not happen");
  }
  return static_cast<int>(ExitStatus::internal);
}
