// What this client has, or may have, in etcd: one claim per request.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "kit/threads/thread_safety.h"
#include "leasehold/store.h"
#include "leases.h"
#include "watcher.h"

namespace leasehold::etcd {

struct Claim {
  enum class State {
    unconfirmed,  // its key may be there
    waiting,      // its key is in the queue, on the waiters' lease
    held,         // it has the lock, alone or beside others; its key is on a lease for locks
    over,         // not held any more; its key may still have to be deleted
  };

  LockName lock;
  Mode mode = {};
  State state = State::unconfirmed;
  std::int64_t created = 0;  // create revision of its key
  LeaseId lease = 0;
  std::string owner = {};  // of a held one
  std::string note = {};
  // Of a permit: the last that it tried to take, and the create revision of that key if it has it.
  std::optional<Slot> slot = {};
  std::int64_t slot_created = 0;
  // Other locks keep the shared lease alive, so that each claim ends here by itself.
  BootTime expires = {};
  // The leases of attempts that may still be on their way to the server, and put the key there.
  std::vector<LeaseId> at_risk = {};

  WatchedKeys predecessor = {};  // what is watched for this waiter
  std::int64_t predecessor_watch = 0;
  std::int64_t permits_watch = 0;
  std::int64_t own_watch = 0;
};

// Forgets them, and gives them back to be cancelled.
std::vector<std::int64_t> take_watches(Claim& claim);

// Thread safe, never blocks.
class Claims {
 public:
  std::optional<Claim> find(const RequestId& request) const;

  // Calls `change(claim)` with the claim of the request, under the lock; makes it if there is none.
  template <class Change>
  void update(const RequestId& request, const LockName& lock, Change change) {
    MutexLock guard(mutex_);
    Claim& claim = claims_.try_emplace(request, Claim{.lock = lock}).first->second;
    change(claim);
    changed(request, claim);
  }
  // The same, but false if there is none.
  template <class Change>
  bool change(const RequestId& request, Change change) {
    MutexLock guard(mutex_);
    const auto found = claims_.find(request);
    if (found == claims_.end()) return false;
    change(found->second);
    changed(request, found->second);
    return true;
  }
  void erase(const RequestId& request);

  // Those that expired by `now`; they are `over` from here on, and expire again after `again`.
  std::vector<std::pair<RequestId, Claim>> expire(BootTime now, Millis again);

  std::vector<RequestId> waiting() const;
  std::vector<RequestId> waiting_on(LeaseId lease) const;
  bool any_waiting() const;
  bool empty() const;
  bool any_held_on(LeaseId lease) const;

 private:
  void changed(const RequestId& request, const Claim& claim) LEASEHOLD_REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::unordered_map<RequestId, Claim> claims_ LEASEHOLD_GUARDED_BY(mutex_);
  std::unordered_set<RequestId> waiting_ LEASEHOLD_GUARDED_BY(mutex_);
  BootTime none_expires_before_ LEASEHOLD_GUARDED_BY(mutex_) = BootTime::max();
};

}  // namespace leasehold::etcd
