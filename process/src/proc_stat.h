// What /proc says about a process.
#pragma once

#include <sys/types.h>

#include <optional>
#include <vector>

namespace leasehold::process {

struct ProcStat {
  char state = 0;
  pid_t parent = 0;
  pid_t group = 0;
  pid_t session = 0;
  long threads = 0;

  // A process whose first thread has ended is shown as a zombie while others of it still work.
  bool lives() const { return threads > 1 || (state != 'Z' && state != 'X'); }
  bool stopped() const { return state == 'T' || state == 't'; }
};

// Nothing if there is no such process.
std::optional<ProcStat> read_stat(pid_t pid);

// All processes of this machine, as far as /proc shows them.
std::vector<pid_t> all_processes();

}  // namespace leasehold::process
