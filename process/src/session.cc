#include "leasehold/process/session.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "pidfd.h"
#include "proc_stat.h"

namespace leasehold::process {
namespace {

using namespace std::chrono_literals;

// The kernel reports a stop to the parent only, and an end only to those who watch that process.
constexpr auto kLookAgain = 1ms;

std::optional<ProcStat> lives_in(pid_t pid, pid_t session) {
  const auto stat = read_stat(pid);
  return stat && stat->session == session && stat->lives() ? stat : std::nullopt;
}

}  // namespace

bool SessionMember::signal(int number) const {
  return signal_pidfd(pidfd.get(), number) == 0;
}

std::vector<SessionMember> living_in_session(pid_t leader) {
  std::vector<SessionMember> members;
  for (const pid_t pid : all_processes()) {
    // The cheap test first: most processes belong to other sessions.
    if (getsid(pid) != leader) continue;
    Fd pidfd(open_pidfd(pid));
    if (!pidfd) continue;
    // The number may have gone to another process before it was opened.
    const auto stat = lives_in(pid, leader);
    if (stat) members.push_back({pid, stat->parent, stat->stopped(), std::move(pidfd)});
  }
  return members;
}

bool stop_session(pid_t leader, Deadline deadline) {
  // Twice, since the last one to run may have had a child just before it stopped.
  for (int quiet = 0; quiet < 2;) {
    const auto members = living_in_session(leader);
    const bool all_stopped = std::all_of(members.begin(), members.end(),
                                         [](const SessionMember& each) { return each.stopped; });
    quiet = all_stopped ? quiet + 1 : 0;
    if (all_stopped) continue;
    if (deadline && std::chrono::steady_clock::now() >= *deadline) return false;
    for (const SessionMember& each : members) {
      if (!each.stopped) each.signal(SIGSTOP);
    }
    std::this_thread::sleep_for(kLookAgain);
  }
  return true;
}

void kill_session(pid_t leader) {
  for (auto members = living_in_session(leader); !members.empty();
       members = living_in_session(leader)) {
    for (const SessionMember& each : members) each.signal(SIGKILL);
    for (const SessionMember& each : members) wait_readable(each.pidfd.get(), within(1s));
  }
}

}  // namespace leasehold::process
