// Sessions: all processes that came from one program, whatever process groups they made.
#pragma once

#include <sys/types.h>

#include <vector>

#include "leasehold/process/io.h"

namespace leasehold::process {

struct SessionMember {
  pid_t pid;
  pid_t parent;
  bool stopped;
  Fd pidfd;

  // False if it has gone.
  bool signal(int number) const;
};

// The living members (not zombies) of the session that `leader` began. The number of a session is
// not given to another one before its leader was reaped and its last member is gone.
std::vector<SessionMember> living_in_session(pid_t leader);

// SIGSTOP to all, also to those that are started meanwhile. True when all have stopped (or gone),
// false if some had not at the deadline.
bool stop_session(pid_t leader, Deadline deadline);

// SIGKILL to all, until nobody is left.
void kill_session(pid_t leader);

}  // namespace leasehold::process
