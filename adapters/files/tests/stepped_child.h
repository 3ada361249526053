// A child process that is stopped after each of its system calls, so that it can be killed or left
// frozen between any two of them.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>

namespace leasehold::files {

class SteppedChild {
 public:
  // `body` gives the child's exit status.
  explicit SteppedChild(const std::function<int()>& body);
  ~SteppedChild();  // kills and reaps it
  SteppedChild(const SteppedChild&) = delete;

  // Runs it up to the end of its next system call. False: it has ended.
  bool step();
  // Runs up to the end of `count` more of them. False: it has ended before.
  bool step(int count);

  // Runs on to the end; its exit status, or nothing if a signal ended it.
  std::optional<int> finish();
  void kill();

 private:
  bool resume(int request);

  pid_t pid_ = -1;
  int status_ = 0;
  bool ended_ = false;
};

}  // namespace leasehold::files
