// Asking again, more and more slowly, where there is no event to wait for.
#pragma once

#include <random>
#include <stop_token>
#include <string>
#include <utility>

#include "kit/threads/thread_safety.h"
#include "leasehold/error.h"
#include "leasehold/time.h"

namespace leasehold::waiting {

// Made when the waiting begins; used by one thread.
class Backoff {
 public:
  Backoff(Millis wait, std::stop_token stop);

  // Blocks for 1 to 50 ms, longer each time, with jitter. False: the time is over or a stop was
  // requested.
  bool pause() LEASEHOLD_EXCLUDES(mutex_);

  // What is left of the wait; never negative.
  Millis left() const;

  // After pause() was false: `cancelled`; `busy` if no wait was asked for; else `timeout`.
  // `reason`: "another process is writing".
  Error give_up(const std::string& reason) const;

 private:
  const Millis wait_;
  const std::stop_token stop_;
  const BootTime deadline_;
  Millis step_{1};
  std::minstd_rand random_{std::random_device{}()};
  Mutex mutex_;
  ConditionVariable stopped_;
};

}  // namespace leasehold::waiting
