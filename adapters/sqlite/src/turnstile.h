// Lets one thread at a time through, in the order of arrival, but what keeps leases and places
// alive first.
#pragma once

#include <chrono>
#include <list>
#include <utility>

#include "kit/threads/doorbell.h"
#include "kit/threads/thread_safety.h"
#include "leasehold/store.h"

namespace leasehold::sqlite {

using Pause = std::chrono::microseconds;

// std::mutex is unfair: under load a renewal could wait behind the same two busy threads for ever.
class Turnstile {
 public:
  // Inside as long as this object lives.
  class [[nodiscard]] Pass {
   public:
    Pass(Pass&& other) noexcept : turnstile_(std::exchange(other.turnstile_, nullptr)) {}
    Pass& operator=(Pass&&) = delete;
    ~Pass() {
      if (turnstile_ != nullptr) turnstile_->leave();
    }

    // Leaves, pauses, and enters again at the end of the line; outside for good if that fails, as
    // enter(). Deadline, stop and close() end the pause.
    [[nodiscard]] Status step_aside(const CallContext& context, Pause pause = Pause(0));

   private:
    friend class Turnstile;
    explicit Pass(Turnstile& turnstile) : turnstile_(&turnstile) {}
    Turnstile* turnstile_;
  };

  // `unavailable` after the deadline or close(), `cancelled` after the stop token.
  // Thousands of callers may stand in line: who is urgent does not stand behind them.
  [[nodiscard]] Result<Pass> enter(const CallContext& context) LEASEHOLD_EXCLUDES(mutex_);

  // How many wait or pause.
  std::size_t in_line() LEASEHOLD_EXCLUDES(mutex_);

  // Nobody enters any more; returns when the last one has left.
  void close() LEASEHOLD_EXCLUDES(mutex_);

 private:
  struct Ticket {
    kit::Doorbell called;  // after `admitted` was set, a stop or close()
    bool admitted = false;
  };
  void leave() LEASEHOLD_EXCLUDES(mutex_);
  void rest(const CallContext& context, Pause pause) LEASEHOLD_EXCLUDES(mutex_);
  std::list<Ticket*>& line_of(const CallContext& call) LEASEHOLD_REQUIRES(mutex_) {
    return call.urgent ? urgent_ : ordinary_;
  }

  Mutex mutex_;
  ConditionVariable emptied_;
  std::list<Ticket*> urgent_ LEASEHOLD_GUARDED_BY(mutex_);
  std::list<Ticket*> ordinary_ LEASEHOLD_GUARDED_BY(mutex_);
  std::list<Ticket*> resting_ LEASEHOLD_GUARDED_BY(mutex_);  // have stepped aside
  bool occupied_ LEASEHOLD_GUARDED_BY(mutex_) = false;
  bool closed_ LEASEHOLD_GUARDED_BY(mutex_) = false;
};

}  // namespace leasehold::sqlite
