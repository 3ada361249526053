// One server process of a test: started here, stopped by its pid, killed at the latest when the
// test ends.
#pragma once

#include <signal.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "leasehold/process/child.h"

namespace leasehold::rig {

class ServerProcess {
 public:
  struct Plan {
    std::vector<std::string> argv;
    std::string log;  // its output; shown when it does not start
    std::vector<std::pair<std::string, std::optional<std::string>>> environment = {};
    std::function<bool()> answers;  // called after the start until it is true
  };

  // Starts it and returns when it answers. Throws std::runtime_error, with the end of its log, if
  // it cannot be started, ends, or does not answer in a minute: a missing server fails the test.
  explicit ServerProcess(Plan plan);
  ServerProcess(ServerProcess&&) = default;
  ServerProcess& operator=(ServerProcess&&) = default;
  ~ServerProcess();  // kills it, and waits for its end

  // Starts it again, with what it left on disk. It must have ended.
  void start();
  void start_without_waiting();
  void wait_until_it_answers();

  void stop(int signal = SIGTERM);  // SIGKILL after ten seconds
  void kill();                      // SIGKILL
  void freeze();                    // returns when it stands still
  void thaw();
  bool runs();
  pid_t pid() const;
  std::string log() const;

 private:
  Plan plan_;
  std::optional<process::Child> child_;
};

}  // namespace leasehold::rig
