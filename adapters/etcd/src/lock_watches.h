// How a client hears that the holders of a lock may have changed: watches of the locks' folders,
// all on one stream.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <unordered_map>
#include <vector>

#include "keys.h"
#include "kit/threads/thread_safety.h"
#include "leasehold/store.h"
#include "watcher.h"

namespace leasehold::etcd {

// Events come on gRPC's threads. What was lost is watched again by keep().
class LockWatches final : public ChangeHints, private WatchListener {
 public:
  // `wake`: keep() must be called now and then from now on.
  LockWatches(const Keys& keys, Transport& transport, std::function<void()> wake)
      : keys_(keys), wake_(std::move(wake)), watcher_(transport, *this) {}

  // Before the first watch.
  void tell(StoreEvents& events) { events_ = &events; }

  void watch(const LockName& lock) override LEASEHOLD_EXCLUDES(mutex_);
  void unwatch(const LockName& lock) override LEASEHOLD_EXCLUDES(mutex_);

  bool empty() LEASEHOLD_EXCLUDES(mutex_);
  // Leaves a silent server, and begins anew what was lost.
  void keep(const ConnectionPointer& connection) LEASEHOLD_EXCLUDES(mutex_);
  // No event comes after it has returned.
  void close() { watcher_.close(); }

 private:
  struct Entry {
    LockName lock;
    std::int64_t number = 0;
    bool begun = false;
    bool lost = false;
  };

  void begin(const RequestId& id, const LockName& lock) LEASEHOLD_EXCLUDES(mutex_);
  void key_changed(const RequestId& id, Watched which) override LEASEHOLD_EXCLUDES(mutex_);
  void watch_lost(const RequestId& id, Watched which) override LEASEHOLD_EXCLUDES(mutex_);
  void watch_began_late(const RequestId& id, Watched which) override LEASEHOLD_EXCLUDES(mutex_);

  const Keys& keys_;
  const std::function<void()> wake_;
  StoreEvents* events_ = nullptr;
  Mutex mutex_;
  std::map<LockName, RequestId> by_lock_ LEASEHOLD_GUARDED_BY(mutex_);
  std::unordered_map<RequestId, Entry> entries_ LEASEHOLD_GUARDED_BY(mutex_);
  bool tells_ LEASEHOLD_GUARDED_BY(mutex_) = false;
  Watcher watcher_;  // last: its threads use the rest
};

}  // namespace leasehold::etcd
