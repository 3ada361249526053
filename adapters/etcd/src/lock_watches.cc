#include "lock_watches.h"

#include <algorithm>
#include <utility>

#include "leasehold/random.h"

namespace leasehold::etcd {
namespace {

// A watch from here on has always begun late, and says so: something may have happened before.
constexpr std::int64_t kSeenNothing = 0;

}  // namespace

void LockWatches::watch(const LockName& lock) {
  const RequestId id = RequestId::random(system_random());
  {
    MutexLock guard(mutex_);
    if (!by_lock_.emplace(lock, id).second) return;
    entries_.emplace(id, Entry{.lock = lock});
  }
  begin(id, lock);
  wake_();
}

void LockWatches::begin(const RequestId& id, const LockName& lock) {
  const std::string folder = keys_.folder(lock);
  const std::int64_t number =
      watcher_.watch({.key = folder, .range_end = end_of_prefix(folder), .puts = true},
                     kSeenNothing, id, Watched::lock);
  {
    MutexLock guard(mutex_);
    const auto found = entries_.find(id);
    if (found != entries_.end()) {
      found->second.number = number;
      return;
    }
  }
  watcher_.cancel(number);
}

void LockWatches::unwatch(const LockName& lock) {
  std::int64_t number = 0;
  {
    MutexLock guard(mutex_);
    const auto found = by_lock_.find(lock);
    if (found == by_lock_.end()) return;
    const auto entry = entries_.find(found->second);
    number = entry->second.number;
    entries_.erase(entry);
    by_lock_.erase(found);
  }
  watcher_.cancel(number);
}

bool LockWatches::empty() {
  MutexLock lock(mutex_);
  return entries_.empty();
}

void LockWatches::keep(const ConnectionPointer& connection) {
  watcher_.move_to(connection);
  std::vector<std::pair<RequestId, LockName>> anew;
  {
    MutexLock lock(mutex_);
    for (auto& [id, entry] : entries_) {
      if (std::exchange(entry.lost, false)) anew.emplace_back(id, entry.lock);
    }
  }
  for (const auto& [id, lock] : anew) begin(id, lock);
}

void LockWatches::key_changed(const RequestId& id, Watched) {
  std::optional<LockName> changed;
  {
    MutexLock lock(mutex_);
    const auto found = entries_.find(id);
    if (found != entries_.end()) changed = found->second.lock;
  }
  if (changed) events_->changed(*changed);
}

void LockWatches::watch_began_late(const RequestId& id, Watched which) {
  bool tells = false;
  {
    MutexLock lock(mutex_);
    const auto found = entries_.find(id);
    if (found == entries_.end()) return;
    found->second.begun = true;
    tells = !tells_ && std::all_of(entries_.begin(), entries_.end(),
                                   [](const auto& it) { return it.second.begun; });
    tells_ = tells_ || tells;
  }
  if (tells) events_->tells_changes();
  key_changed(id, which);
}

void LockWatches::watch_lost(const RequestId& id, Watched) {
  {
    MutexLock lock(mutex_);
    const auto found = entries_.find(id);
    if (found == entries_.end()) return;
    found->second.begun = false;
    found->second.lost = true;
    if (!std::exchange(tells_, false)) return;
  }
  events_->tells_no_changes(
      Error(ErrorCode::unavailable, "the stream on which etcd tells changes has ended"));
}

}  // namespace leasehold::etcd
