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

// The living members (not zombies) of `group`.
std::vector<GroupMember> living_members(pid_t group);

struct GroupEnd {
  std::size_t found = 0;  // members that were alive at the beginning
  bool killed = false;    // some needed SIGKILL
};

// Ends what is left of a group whose leader has ended: SIGTERM (and SIGCONT, for the stopped),
// then SIGKILL at `kill_at` or as soon as `hurry` becomes readable. Waits until nobody is left.
// Reap the leader afterwards: its number, and so that of the group, stays taken until then.
GroupEnd end_group(pid_t group, Deadline kill_at, int hurry = -1);

// Reaps the children of this process that have ended, but not `mine`: what the first process of a
// container owes to those who lost their parent.
void reap_all_but(pid_t mine);

}  // namespace leasehold::process
