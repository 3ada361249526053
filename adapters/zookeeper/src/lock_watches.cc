#include "lock_watches.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "leasehold/random.h"

namespace leasehold::zookeeper {
namespace {

constexpr auto kAgainAfter = std::chrono::seconds(1);

}  // namespace

void LockWatches::watch(const LockName& lock) {
  const RequestId id = RequestId::random(system_random());
  {
    MutexLock guard(mutex_);
    if (!by_lock_.emplace(lock, id).second) return;
    entries_.emplace(id, Entry{.lock = lock});
  }
  set(id);
}

void LockWatches::unwatch(const LockName& lock) {
  MutexLock guard(mutex_);
  const auto found = by_lock_.find(lock);
  if (found == by_lock_.end()) return;
  const auto entry = entries_.find(found->second);
  if (const auto session = entry->second.set_in.lock()) {
    session->tell_no_more(store_.folder(lock), found->second);
  }
  entries_.erase(entry);
  by_lock_.erase(found);
}

std::optional<LockName> LockWatches::lock_of(const RequestId& id) {
  MutexLock lock(mutex_);
  const auto found = entries_.find(id);
  return found == entries_.end() ? std::nullopt : std::optional(found->second.lock);
}

bool LockWatches::touched(const RequestId& id) {
  if (!lock_of(id)) return false;
  set(id);
  return true;
}

void LockWatches::session_over(const std::shared_ptr<Session>& session) {
  std::vector<RequestId> lost;
  bool told_before = false;
  {
    MutexLock lock(mutex_);
    for (auto& [id, entry] : entries_) {
      if (entry.set_in.lock() != session) continue;
      entry.set_in.reset();
      lost.push_back(id);
    }
    if (lost.empty()) return;
    told_before = std::exchange(tells_, false);
  }
  StoreEvents* events = store_.events();
  if (told_before && events != nullptr) {
    events->tells_no_changes(
        Error(ErrorCode::unavailable, "the session in which ZooKeeper tells changes has ended"));
  }
  for (const RequestId& id : lost) set_later(id);
}

// ---- setting a watch -----------------------------------------------------------------------

void LockWatches::set(const RequestId& id) {
  const auto session = store_.session();
  if (!session) return set_later(id);
  (*session)->when_ready([this, id, session = *session](const Status& ready) {
    if (!ready) return set_later(id);
    set_in(session, id);
  });
}

void LockWatches::set_in(const std::shared_ptr<Session>& session, const RequestId& id) {
  const auto lock = lock_of(id);
  if (!lock) return;
  const std::string folder = store_.folder(*lock);
  session->tell_of(folder, id);
  const auto listed = [this, session, id, folder](int rc, const auto&, const NodeStat&) {
    const Outcome outcome = outcome_of(rc);
    if (outcome == Outcome::done) return is_set(session, id);
    if (outcome == Outcome::no_node) return set_for_folder(session, id, folder);
    session->tell_no_more(folder, id);
    set_later(id);
  };
  session->server().children(folder, true, listed);
}

// Nobody has used the lock yet, or the server has swept its folder.
void LockWatches::set_for_folder(const std::shared_ptr<Session>& session, const RequestId& id,
                                 const std::string& folder) {
  session->server().exists(
      folder, true, [this, session, id, folder](int rc, const std::string&, const NodeStat&) {
        const Outcome outcome = outcome_of(rc);
        if (outcome == Outcome::no_node) return is_set(session, id);
        if (outcome == Outcome::done) return set_in(session, id);  // it has just been made
        session->tell_no_more(folder, id);
        set_later(id);
      });
}

void LockWatches::set_later(const RequestId& id) {
  agenda_.add(BootClock::now() + kAgainAfter, [this, id](Agenda::Reason reason) {
    if (reason == Agenda::Reason::due && lock_of(id)) set(id);
  });
}

void LockWatches::is_set(const std::shared_ptr<Session>& session, const RequestId& id) {
  bool tells = false;
  std::optional<LockName> changed;
  {
    MutexLock lock(mutex_);
    const auto found = entries_.find(id);
    if (found == entries_.end()) return;
    found->second.set_in = session;
    changed = found->second.lock;
    tells = !tells_ && std::all_of(entries_.begin(), entries_.end(),
                                   [](const auto& it) { return !it.second.set_in.expired(); });
    tells_ = tells_ || tells;
  }
  StoreEvents* events = store_.events();
  if (events == nullptr) return;
  if (tells) events->tells_changes();
  // Before the watch was set something may have happened.
  events->changed(*changed);
}

}  // namespace leasehold::zookeeper
