// Process groups: who is left in one, and ending them.
#pragma once

#include <sys/types.h>

#include <vector>

#include "leasehold/process/io.h"

namespace leasehold::process {

struct GroupMember {
  pid_t pid;
  Fd pidfd;
};

// The living members (not zombies) of `group`. Cheap if the group is gone altogether.
std::vector<GroupMember> living_members(pid_t group);

struct GroupEnd {
  std::size_t found = 0;  // members that were alive at the beginning
  bool killed = false;    // some needed SIGKILL
};

// Ends what is left of a group whose leader was reaped: SIGTERM (and SIGCONT, for the stopped),
// then SIGKILL at `kill_at` or as soon as `hurry` becomes readable. Waits until nobody is left.
GroupEnd end_group(pid_t group, Deadline kill_at, int hurry = -1);

}  // namespace leasehold::process
