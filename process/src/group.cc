#include "leasehold/process/group.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <set>

#include "pidfd.h"
#include "proc_stat.h"

namespace leasehold::process {
namespace {

bool lives_in(pid_t pid, pid_t group) {
  const auto stat = read_stat(pid);
  return stat && stat->group == group && stat->lives();
}

// Waits until one of them ends, `hurry` is readable or the deadline passes.
void wait_for_change(const std::vector<GroupMember>& members, Deadline deadline, int hurry) {
  std::vector<pollfd> entries;
  for (const GroupMember& member : members) entries.push_back({member.pidfd.get(), POLLIN, 0});
  entries.push_back({hurry, POLLIN, 0});
  timespec left{};
  if (deadline) {
    const auto span = std::max(*deadline - std::chrono::steady_clock::now(),
                               std::chrono::steady_clock::duration::zero());
    const auto nanos = std::chrono::duration_cast<std::chrono::nanoseconds>(span).count();
    left = {static_cast<time_t>(nanos / 1'000'000'000), static_cast<long>(nanos % 1'000'000'000)};
  }
  ppoll(entries.data(), entries.size(), deadline ? &left : nullptr, nullptr);
}

// Once each. A member may have been born after the others were asked.
void ask_to_end(const std::vector<GroupMember>& members, std::set<pid_t>& asked) {
  for (const GroupMember& member : members) {
    if (!asked.insert(member.pid).second) continue;
    signal_pidfd(member.pidfd.get(), SIGTERM);
    signal_pidfd(member.pidfd.get(), SIGCONT);
  }
}

bool must_kill(Deadline kill_at, int hurry) {
  if (kill_at && std::chrono::steady_clock::now() >= *kill_at) return true;
  return hurry >= 0 && wait_readable(hurry, within(std::chrono::nanoseconds(0)));
}

}  // namespace

std::vector<GroupMember> living_members(pid_t group) {
  std::vector<GroupMember> members;
  if (kill(-group, 0) != 0 && errno == ESRCH) return members;
  for (const pid_t pid : all_processes()) {
    // First what costs little: most processes of a machine are strangers.
    if (getpgid(pid) != group || !lives_in(pid, group)) continue;
    Fd pidfd(open_pidfd(pid));
    // The number may have gone to another process since it was read.
    if (pidfd && lives_in(pid, group)) members.push_back({pid, std::move(pidfd)});
  }
  return members;
}

GroupEnd end_group(pid_t group, Deadline kill_at, int hurry) {
  auto members = living_members(group);
  GroupEnd end{members.size(), false};
  std::set<pid_t> asked;
  while (!members.empty()) {
    if (!end.killed && must_kill(kill_at, hurry)) {
      end.killed = true;
      kill(-group, SIGKILL);
    }
    if (end.killed) {
      wait_for_change(members, {}, -1);
    } else {
      ask_to_end(members, asked);
      wait_for_change(members, kill_at, hurry);
    }
    members = living_members(group);
  }
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
