// Which requests may still have an acquire on its way.
#pragma once

#include <atomic>
#include <unordered_set>

#include "kit/threads/thread_safety.h"
#include "leasehold/id.h"

namespace leasehold {

// An acquire whose reply did not come may sit in a buffer of the network, and be done after the
// release that took it back. The release of such a request must leave something at the store where
// the late acquire finds it. Thread safe, and free of charge while there is no doubt.
class Doubts {
 public:
  void doubt(const RequestId& request) LEASEHOLD_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    doubtful_.insert(request);
    any_ = true;
  }
  bool doubts(const RequestId& request) LEASEHOLD_EXCLUDES(mutex_) {
    if (!any_) return false;
    MutexLock lock(mutex_);
    return doubtful_.contains(request);
  }
  // Its release is done.
  void settle(const RequestId& request) LEASEHOLD_EXCLUDES(mutex_) {
    if (!any_) return;
    MutexLock lock(mutex_);
    doubtful_.erase(request);
    any_ = !doubtful_.empty();
  }

 private:
  std::atomic<bool> any_ = false;
  Mutex mutex_;
  std::unordered_set<RequestId> doubtful_ LEASEHOLD_GUARDED_BY(mutex_);
};

}  // namespace leasehold
