#include "leasehold/process/group.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>

#include "proc_stat.h"

namespace leasehold::process {
namespace {

using namespace std::chrono_literals;

// The kernel tells nobody but its parent that a process has ended.
constexpr std::chrono::milliseconds kLookAgain = 1ms;
constexpr std::chrono::milliseconds kLookAgainAtLast = 20ms;

// Reaps the members that are children of this process; how many there were.
std::size_t reap_group(pid_t group) {
  std::size_t count = 0;
  for (;; ++count) {
    siginfo_t info{};
    if (waitid(P_PGID, static_cast<id_t>(group), &info, WEXITED | WNOHANG) != 0) return count;
    if (info.si_pid == 0) return count;
  }
}

// As long as somebody is in it, its number is not given to another group.
bool is_left(pid_t group) {
  return kill(-group, 0) == 0 || errno != ESRCH;
}

// The kernel counts the dead too until their parent reaps them, and a parent outside of the
// group may never do it. Only /proc tells them from the living; without it they are waited for.
bool all_are_dead(pid_t group) {
  bool any = false;
  for (const pid_t pid : all_processes()) {
    if (getpgid(pid) != group) continue;
    const auto stat = read_stat(pid);
    if (stat && stat->lives()) return false;
    any = true;
  }
  return any;
}

}  // namespace

void adopt_orphans() {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
}

GroupEnd end_group(Child& leader, Deadline kill_at, int hurry) {
  const pid_t group = leader.pid();
  leader.wait();
  reap_group(group);
  if (!is_left(group)) return {};
  const auto must_kill = [&](Deadline look) {
    const Deadline until = kill_at && *kill_at < *look ? kill_at : look;
    return wait_readable(hurry, until) || (kill_at && std::chrono::steady_clock::now() >= *kill_at);
  };
  GroupEnd end{0, must_kill(within(0ns))};
  if (!end.killed) {
    kill(-group, SIGTERM);
    kill(-group, SIGCONT);
  }
  for (auto pause = kLookAgain; is_left(group); pause = std::min(pause * 2, kLookAgainAtLast)) {
    if (!end.killed) end.killed = must_kill(within(pause));
    if (end.killed) {
      kill(-group, SIGKILL);  // each time: somebody may have joined it
      std::this_thread::sleep_for(kLookAgain);
    }
    end.found += reap_group(group);
    if (!end.killed || !all_are_dead(group)) continue;
    end.found += reap_group(group);  // those that died after the last look; the rest are not ours
    break;
  }
  end.found = std::max<std::size_t>(end.found, 1);  // others may have reaped them
  return end;
}

void reap_all_but(pid_t mine) {
  for (;;) {
    siginfo_t info{};
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0) return;
    if (info.si_pid == 0 || info.si_pid == mine) return;
    waitid(P_PID, static_cast<id_t>(info.si_pid), &info, WEXITED | WNOHANG);
  }
}

}  // namespace leasehold::process
