#include "user_worker.h"

#include <signal.h>

#include <algorithm>
#include <map>

#include "leasehold/process/session.h"

namespace leasehold::drill {
namespace {

using namespace std::chrono_literals;
using process::SessionMember;

bool is_below(pid_t pid, pid_t ancestor, const std::map<pid_t, pid_t>& parents) {
  for (auto at = parents.find(pid); at != parents.end(); at = parents.find(at->second)) {
    if (at->second == ancestor) return true;
  }
  return false;
}

}  // namespace

Result<UserWorker> UserWorker::start(process::Command command) {
  command.placement = process::Placement::own_session;
  command.parent_death_signal = SIGKILL;
  auto child = process::Child::start(command);
  if (!child) return fail(ErrorCode::invalid, child.error().message);
  return UserWorker(std::move(*child));
}

UserWorker::~UserWorker() {
  if (!reaped_) end();
}

bool UserWorker::has_ended() const {
  return reaped_ || process::wait_readable(child_.pidfd(), process::within(0s));
}

bool UserWorker::freeze() {
  return process::stop_session(child_.pid(), process::within(10s));
}

bool UserWorker::thaw_children_of(pid_t last) {
  const bool keep = anybody_below(last);
  for (const SessionMember& each : process::living_in_session(child_.pid())) {
    if (!keep || each.pid != last) each.signal(SIGCONT);
  }
  return keep;
}

void UserWorker::thaw() {
  for (const SessionMember& each : process::living_in_session(child_.pid())) each.signal(SIGCONT);
}

bool UserWorker::anybody_below(pid_t ancestor) const {
  std::map<pid_t, pid_t> parents;
  for (const SessionMember& each : process::living_in_session(child_.pid())) {
    parents[each.pid] = each.parent;
  }
  return parents.contains(ancestor) &&
         std::any_of(parents.begin(), parents.end(),
                     [&](const auto& each) { return is_below(each.first, ancestor, parents); });
}

// The leader is reaped last: until then nobody else can get its number, and so that of the session.
process::ExitStatus UserWorker::end() {
  if (!reaped_) process::kill_session(child_.pid());
  reaped_ = true;
  return child_.wait();
}

}  // namespace leasehold::drill
