#include "leasehold/process/group.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <set>

#include "pidfd.h"

namespace leasehold::process {
namespace {

std::optional<pid_t> as_pid(const char* name) {
  pid_t pid = 0;
  const char* end = name + std::strlen(name);
  const auto [stop, error] = std::from_chars(name, end, pid);
  if (error != std::errc() || stop != end) return std::nullopt;
  return pid;
}

// Fields 3 and 5 of /proc/PID/stat; field 2 may hold spaces and parentheses, so search from the
// end.
bool lives_in(pid_t pid, pid_t group) {
  const Fd file(open(("/proc/" + std::to_string(pid) + "/stat").c_str(), O_RDONLY | O_CLOEXEC));
  char text[512];
  const ssize_t got = file ? read(file.get(), text, sizeof text - 1) : -1;
  if (got <= 0) return false;
  text[got] = '\0';
  const char* rest = std::strrchr(text, ')');
  char state = 0;
  pid_t parent = 0;
  pid_t its_group = 0;
  if (!rest || std::sscanf(rest + 1, " %c %d %d", &state, &parent, &its_group) != 3) return false;
  return its_group == group && state != 'Z' && state != 'X';
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
  const std::unique_ptr<DIR, int (*)(DIR*)> processes(opendir("/proc"), closedir);
  while (const dirent* entry = processes ? readdir(processes.get()) : nullptr) {
    const auto pid = as_pid(entry->d_name);
    // First what costs little: most processes of a machine are strangers.
    if (!pid || getpgid(*pid) != group || !lives_in(*pid, group)) continue;
    Fd pidfd(open_pidfd(*pid));
    // The number may have gone to another process since it was read.
    if (pidfd && lives_in(*pid, group)) members.push_back({*pid, std::move(pidfd)});
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
