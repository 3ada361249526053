// The drill's handle on one worker process.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "leasehold/error.h"
#include "leasehold/process/child.h"

namespace leasehold::drill {

// Killed with the object. Not thread safe.
class WorkerProcess {
 public:
  using Environment = decltype(process::Command::environment);

  // Fails with `unavailable` if it cannot be started. What is secret goes by the environment, which
  // only its own user can read; argv is everybody's.
  [[nodiscard]] static Result<WorkerProcess> start(std::string name, std::vector<std::string> argv,
                                                   Environment environment,
                                                   const std::string& errors);

  const std::string& name() const { return name_; }
  int fd() { return child_.out().get(); }  // readable when it has said something

  // What it has said, without blocking. Nothing more to come: has_ended().
  std::vector<std::string> lines();
  bool has_ended() const { return ended_; }

  void go();  // lets it write
  void freeze();
  // True if it was really stopped since freeze().
  bool was_frozen();
  void thaw();
  void kill();

 private:
  WorkerProcess(std::string name, process::Child child)
      : name_(std::move(name)), child_(std::move(child)) {}
  std::string name_;
  process::Child child_;
  std::string unread_;
  bool ended_ = false;
};

}  // namespace leasehold::drill
