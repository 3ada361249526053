// Everything a child needs, made before the fork: afterwards nothing may be allocated.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "leasehold/process/child.h"

namespace leasehold::process {

class Launch {
 public:
  explicit Launch(const Command& command);
  tl::expected<Child, StartError> go();

 private:
  struct Failure {
    StartError::Step step;
    int error;
  };
  struct Streams {
    Fd mine[3];    // the parent's ends of pipes
    Fd theirs[3];  // what becomes 0, 1 and 2 in the child; empty: inherited
  };

  int prepare_stream(const Stream& stream, int target);
  int prepare_streams();
  void prepare_environment();
  void prepare_candidates();
  std::string variable(std::string_view name) const;

  [[noreturn]] void become_command(pid_t parent, int report);
  int place(pid_t parent) const;
  int wire_streams() const;
  int execute();
  void set_dispositions() const;

  StartError explain(Failure failure) const;

  const Command& command_;
  Streams streams_;
  std::vector<std::string> environment_;
  std::vector<std::string> candidates_;  // paths to try, in order
  std::vector<char*> argv_;              // slot 0 is free, for /bin/sh
  std::vector<char*> envp_;
};

}  // namespace leasehold::process
