// `leasehold` with a terminal of its own as stdin and stderr; stdout is a pipe.
#pragma once

#include <string>

#include "cli/tests/cli_fixture.h"

namespace leasehold::cli {

class TerminalProgram {
 public:
  // `command` is started in a session of its own, so that Ctrl-C on the terminal reaches it.
  explicit TerminalProgram(process::Command command);

  void type(const std::string& text);
  // Waits for this on the terminal, and gives all that came up to its end.
  std::string expect(const std::string& text);
  // To its end. What came on the terminal is not in `err`.
  Finished finish();
  Child& child() { return child_; }

 private:
  process::Pty pty_;
  Child child_;
  std::string seen_;
};

}  // namespace leasehold::cli
