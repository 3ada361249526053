// Process groups: who is left in one, and ending them. Also works without /proc, which may be
// missing or hide the processes of others.
#pragma once

#include <sys/types.h>

#include <cstddef>

#include "leasehold/process/child.h"

namespace leasehold::process {

// From now on this process becomes the parent of its orphaned descendants, as init does otherwise.
// It must reap them: reap_all_but().
void adopt_orphans();

struct GroupEnd {
  std::size_t found = 0;  // members that were asked to end, as far as that can be known
  bool killed = false;    // some needed SIGKILL
};

// Waits for `leader`, then ends what is left of its group, and reaps it: SIGTERM (and
// SIGCONT, for the stopped), then SIGKILL at `kill_at` or as soon as `hurry` becomes readable.
// Waits until nobody is left; so adopt orphans before the leader starts, or another process must
// reap them. Where there is no /proc, a dead member that its parent never reaps is waited for, too.
GroupEnd end_group(Child& leader, Deadline kill_at, int hurry = -1);

// Reaps the children of this process that have ended, but not `mine`.
void reap_all_but(pid_t mine);

}  // namespace leasehold::process
