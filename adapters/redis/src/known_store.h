// Which store this client believes to be at a server.
#pragma once

#include <optional>

#include "kit/threads/thread_safety.h"
#include "leasehold/id.h"

namespace leasehold::redis {

// What a script is told, so that it need only compare: it answers which store it is if it is
// another. Thread safe.
class KnownStore {
 public:
  std::optional<StoreId> id() const LEASEHOLD_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return id_;
  }
  void learn(const StoreId& id) LEASEHOLD_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    id_ = id;
  }

 private:
  mutable Mutex mutex_;
  std::optional<StoreId> id_ LEASEHOLD_GUARDED_BY(mutex_);
};

}  // namespace leasehold::redis
