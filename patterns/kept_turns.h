// Turns of a rate limit that this process keeps, each until it is over, because the store cannot.
#pragma once

#include <deque>
#include <thread>

#include "kit/threads/thread_safety.h"
#include "leasehold/lease.h"

namespace leasehold::detail {

// Thread safe. Has no thread before the first turn. Gives back what is left when it goes.
class KeptTurns {
 public:
  KeptTurns() = default;
  KeptTurns(const KeptTurns&) = delete;
  ~KeptTurns();

  // `interval` from now on. `unavailable` if the system has no thread left: the turn is over.
  [[nodiscard]] Status keep(Lease turn, Millis interval) LEASEHOLD_EXCLUDES(mutex_);

 private:
  struct Turn {
    BootTime until;
    Lease lease;
  };
  void give_back_in_time(const std::stop_token& stop) LEASEHOLD_EXCLUDES(mutex_);

  Mutex mutex_;
  ConditionVariable changed_;
  std::deque<Turn> turns_ LEASEHOLD_GUARDED_BY(mutex_);
  std::jthread thread_ LEASEHOLD_GUARDED_BY(mutex_);
};

}  // namespace leasehold::detail
