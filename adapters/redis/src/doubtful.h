// Requests of which an acquire may still be on its way to the server.
#pragma once

#include <atomic>
#include <unordered_set>

#include "leasehold/detail/thread_safety.h"
#include "leasehold/id.h"

namespace leasehold::redis {

// An acquire whose reply did not come may sit in a buffer of the network, and be done after the
// release that took it back. The release of such a request leaves a mark at the server, which the
// late acquire finds. Thread safe.
class Doubtful {
 public:
  void add(const RequestId& request) LEASEHOLD_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    requests_.insert(request);
    any_ = true;
  }
  bool has(const RequestId& request) LEASEHOLD_EXCLUDES(mutex_) {
    if (!any_) return false;
    MutexLock lock(mutex_);
    return requests_.count(request) != 0;
  }
  void remove(const RequestId& request) LEASEHOLD_EXCLUDES(mutex_) {
    if (!any_) return;
    MutexLock lock(mutex_);
    requests_.erase(request);
    any_ = !requests_.empty();
  }

 private:
  std::atomic<bool> any_ = false;
  Mutex mutex_;
  std::unordered_set<RequestId> requests_ LEASEHOLD_GUARDED_BY(mutex_);
};

}  // namespace leasehold::redis
