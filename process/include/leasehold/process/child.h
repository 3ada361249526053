// A real process, started, signalled and reaped here and nowhere else.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>

#include <tl/expected.hpp>

#include "leasehold/process/command.h"
#include "leasehold/process/exit_status.h"
#include "leasehold/process/io.h"

namespace leasehold::process {

// Move-only. A child that was not waited for is killed (with its process group or session group,
// if it leads one) and reaped by the destructor: no zombie, no stray.
// Not thread safe. The parent may have threads: nothing but async-signal-safe calls happen between
// fork and exec.
class Child {
 public:
  // Returns after the command was executed, or could not be.
  [[nodiscard]] static tl::expected<Child, StartError> start(const Command& command);

  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) noexcept;
  ~Child();

  pid_t pid() const { return pid_; }

  // Readable (poll) once the process has ended.
  int pidfd() const { return pidfd_.get(); }

  // The parent's ends of Piped streams.
  Fd& in() { return in_; }
  Fd& out() { return out_; }
  Fd& err() { return err_; }

  // Blocks until the process has ended, and reaps it. A second call gives the same answer.
  // `unknown` if somebody else reaped it; so do not ignore SIGCHLD.
  ExitStatus wait();
  // The same; nothing if it still runs at the deadline.
  std::optional<ExitStatus> wait(Deadline deadline);
  std::optional<ExitStatus> wait_for(std::chrono::nanoseconds span) { return wait(within(span)); }
  // The same, without blocking.
  std::optional<ExitStatus> poll();

  // The signal that stopped the process since the last call, if one did.
  std::optional<int> take_stop();
  // It was continued since the last call, and not stopped after that.
  bool take_continue();

  // False if there is nobody left to signal.
  bool signal(int number);
  // To every member of the group that the child leads. The number of a group is not given to
  // another one before its leader was reaped and its last member is gone. The signal goes to the
  // child alone if it leads no group.
  bool signal_group(int number);
  // SIGSTOP to its group or to it alone; returns when it has stopped, with all its threads, or has
  // ended.
  void freeze();

 private:
  friend class Launch;
  Child() = default;
  void finish() noexcept;

  pid_t pid_ = -1;
  bool leads_group_ = false;
  Fd pidfd_;
  Fd in_;
  Fd out_;
  Fd err_;
  std::optional<ExitStatus> status_;
};

}  // namespace leasehold::process
