#include "cli/tests/terminal_program.h"

#include <unistd.h>

namespace leasehold::cli {
namespace {

Child start_on(process::Command command, const process::Pty& pty) {
  command.in = command.err = process::FromFd{pty.slave.get()};
  command.out = Piped{};
  command.placement = process::Placement::own_session;
  command.terminal = pty.slave.get();
  auto child = Child::start(command);
  EXPECT_TRUE(child);
  return std::move(*child);
}

}  // namespace

TerminalProgram::TerminalProgram(process::Command command)
    : pty_(process::make_pty()), child_(start_on(std::move(command), pty_)) {}

void TerminalProgram::type(const std::string& text) {
  write_all(pty_.master.get(), text);
}

std::string TerminalProgram::expect(const std::string& text) {
  const auto deadline = within(kPatience);
  std::size_t at = 0;
  while ((at = seen_.find(text)) == std::string::npos) {
    if (!wait_readable(pty_.master.get(), deadline)) {
      ADD_FAILURE() << "no '" << text << "' in:\n" << seen_;
      return std::exchange(seen_, "");
    }
    char buffer[1024];
    const ssize_t got = ::read(pty_.master.get(), buffer, sizeof buffer);
    if (got <= 0) return std::exchange(seen_, "");
    seen_.append(buffer, static_cast<std::size_t>(got));
  }
  std::string before = seen_.substr(0, at + text.size());
  seen_.erase(0, at + text.size());
  return before;
}

Finished TerminalProgram::finish() {
  std::string out = read_all(child_.out().get(), within(kPatience));
  const auto status = child_.wait_for(kPatience);
  EXPECT_TRUE(status) << "still running";
  return {status ? status->shell_status() : -1, std::move(out), ""};
}

}  // namespace leasehold::cli
