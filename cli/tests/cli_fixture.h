// Runs the built program as a user would.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "leasehold/process/child.h"
#include "leasehold/process/terminal.h"

namespace leasehold::cli {

using namespace std::chrono_literals;
using process::Child;
using process::Piped;
using process::read_all;
using process::read_until;
using process::wait_readable;
using process::within;
using process::write_all;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

using Words = std::vector<std::string>;

// Longer than anything here takes; only a failing test waits for it.
inline constexpr auto kPatience = 60s;

struct Finished {
  int status = -1;
  std::string out;
  std::string err;
};

class CliTest : public ::testing::Test {
 protected:
  CliTest();
  ~CliTest() override;

  std::string path(const std::string& file) const { return folder_ + "/" + file; }
  std::string store() const { return "sqlite:" + path("locks.db"); }

  // A program with this test's environment: its own default store, and `leasehold` in the PATH.
  process::Command command(Words argv) const;

  // Any program to its end.
  Finished finish(Words argv, const std::string& input = "") const;
  Finished finish(Child child) const;
  // `leasehold <words>` to its end.
  Finished leasehold(Words words) const;
  // The same with a terminal of that width as stdout: what stood there.
  std::string on_terminal(unsigned short columns, Words words) const;
  Finished shell(const std::string& script) const { return finish({"sh", "-c", script}); }

  // `leasehold <words>` in the background, stdin and stdout piped, stderr into a file.
  Child start_piped(Words words) const;
  // `leasehold run <words>` likewise.
  Child start(Words words) const;
  // The same, after the command printed "ready".
  Child start_ready(Words words) const;
  std::string errors() const;

  void write(const std::string& file, const std::string& text) const;
  std::string read(const std::string& file) const;

 private:
  std::string folder_;
};

// While it lives, LeakSanitizer does not look at the programs that are started.
class NoLeakCheck {
 public:
  NoLeakCheck() { setenv("LSAN_OPTIONS", "detect_leaks=0", /*overwrite=*/1); }
  ~NoLeakCheck() { unsetenv("LSAN_OPTIONS"); }
  NoLeakCheck(const NoLeakCheck&) = delete;
};

// `options`, and those of `defaults` (names and values in turn) that are not among them.
inline Words with_defaults(Words options, const Words& defaults) {
  for (std::size_t i = 0; i + 1 < defaults.size(); i += 2) {
    if (std::find(options.begin(), options.end(), defaults[i]) != options.end()) continue;
    options.insert(options.end(), {defaults[i], defaults[i + 1]});
  }
  return options;
}

// Nobody reads it, and it has no room left.
process::Pipe make_full_pipe();

inline Words run_shell(Words options, const std::string& script) {
  options.insert(options.end(), {"--", "sh", "-c", script});
  return options;
}

}  // namespace leasehold::cli
