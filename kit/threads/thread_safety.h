// A mutex whose discipline the compiler checks: clang's -Wthread-safety reads these annotations.
#pragma once

#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <utility>

#include "leasehold/time.h"

#if defined(__clang__)
#define LEASEHOLD_TS(x) __attribute__((x))
#else
#define LEASEHOLD_TS(x)
#endif
#define LEASEHOLD_GUARDED_BY(mutex) LEASEHOLD_TS(guarded_by(mutex))
#define LEASEHOLD_REQUIRES(...) LEASEHOLD_TS(requires_capability(__VA_ARGS__))
#define LEASEHOLD_EXCLUDES(...) LEASEHOLD_TS(locks_excluded(__VA_ARGS__))

namespace leasehold {

// Spins for a moment before it sleeps: what is done under a lock here is mostly shorter than going
// to sleep and being woken.
class LEASEHOLD_TS(capability("mutex")) Mutex {
 public:
  void lock() LEASEHOLD_TS(acquire_capability()) {
    if (!mutex_.try_lock()) lock_contended();
  }
  void unlock() LEASEHOLD_TS(release_capability()) { mutex_.unlock(); }
  bool try_lock() LEASEHOLD_TS(try_acquire_capability(true)) { return mutex_.try_lock(); }

 private:
  void lock_contended();

  std::mutex mutex_;
};

class LEASEHOLD_TS(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) LEASEHOLD_TS(acquire_capability(mutex)) : mutex_(mutex) {
    mutex_.lock();
  }
  ~MutexLock() LEASEHOLD_TS(release_capability()) { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// Waits with the Mutex that the caller holds.
class ConditionVariable {
 public:
  template <class Predicate>
  void wait(Mutex& mutex, Predicate ready) LEASEHOLD_REQUIRES(mutex) {
    condition_.wait(mutex, std::move(ready));
  }
  // False if the stop token or the limit came before the predicate.
  template <class Duration, class Predicate>
  bool wait_for(Mutex& mutex, std::stop_token stop, Duration limit, Predicate ready)
      LEASEHOLD_REQUIRES(mutex) {
    return condition_.wait_for(mutex, std::move(stop), detail::within_reason(limit),
                               std::move(ready));
  }
  template <class Duration, class Predicate>
  bool wait_for(Mutex& mutex, Duration limit, Predicate ready) LEASEHOLD_REQUIRES(mutex) {
    return condition_.wait_for(mutex, detail::within_reason(limit), std::move(ready));
  }
  void notify_one() { condition_.notify_one(); }
  void notify_all() { condition_.notify_all(); }

 private:
  std::condition_variable_any condition_;
};

}  // namespace leasehold
