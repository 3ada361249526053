// One thread that calls back when the boot clock reaches a time.
#pragma once

#include <functional>
#include <thread>

#include "kit/system/fd.h"
#include "kit/threads/thread_safety.h"
#include "leasehold/time.h"

namespace leasehold::detail {

// The timer counts on CLOCK_BOOTTIME, so after a suspend it fires at once instead of as much later
// as the machine slept. Thread safe; on_time runs on the timer's thread.
class WakeTimer {
 public:
  explicit WakeTimer(std::function<void()> on_time);
  ~WakeTimer() { stop(); }
  WakeTimer(const WakeTimer&) = delete;

  // Calls on_time once at `when` (or soon after), unless armed again before.
  void arm(BootTime when) LEASEHOLD_EXCLUDES(mutex_);

  // Waits for a running on_time; not to be called from it. arm() does nothing afterwards.
  void stop() LEASEHOLD_EXCLUDES(mutex_);

 private:
  void run();
  void set(BootTime when) LEASEHOLD_REQUIRES(mutex_);
  bool stopping() LEASEHOLD_EXCLUDES(mutex_);

  std::function<void()> on_time_;
  kit::Fd timer_;
  Mutex mutex_;
  bool stopping_ LEASEHOLD_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace leasehold::detail
