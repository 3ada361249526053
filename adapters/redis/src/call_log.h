// The order of this client's calls, and which of them may still be on their way.
#pragma once

#include <atomic>
#include <cstdint>
#include <unordered_set>

#include "leasehold/detail/thread_safety.h"
#include "leasehold/id.h"

namespace leasehold::redis {

// An acquire whose reply did not come may sit in a buffer of the network, and be done after the
// release that took it back. So calls are numbered, and the release of such a request leaves its
// number at the server, where the late acquire finds it. Thread safe.
class CallLog {
 public:
  std::int64_t next_number() { return ++last_; }

  // An acquire of this request may be on its way.
  void doubt(const RequestId& request) LEASEHOLD_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    doubtful_.insert(request);
    any_ = true;
  }
  bool doubts(const RequestId& request) LEASEHOLD_EXCLUDES(mutex_) {
    if (!any_) return false;
    MutexLock lock(mutex_);
    return doubtful_.count(request) != 0;
  }
  void settle(const RequestId& request) LEASEHOLD_EXCLUDES(mutex_) {
    if (!any_) return;
    MutexLock lock(mutex_);
    doubtful_.erase(request);
    any_ = !doubtful_.empty();
  }

 private:
  std::atomic<std::int64_t> last_ = 0;
  std::atomic<bool> any_ = false;
  Mutex mutex_;
  std::unordered_set<RequestId> doubtful_ LEASEHOLD_GUARDED_BY(mutex_);
};

}  // namespace leasehold::redis
