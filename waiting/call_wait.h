// Waiting for a socket inside a store call: until it is ready, or the call must end.
#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include "kit/system/fd.h"
#include "leasehold/error.h"
#include "leasehold/store.h"

namespace leasehold::waiting {

// A switch that many threads can poll: once thrown, its descriptor stays readable. Thread safe.
class Alarm {
 public:
  Alarm();  // throws std::system_error without descriptors
  void raise() noexcept;
  int fd() const { return fd_.get(); }

 private:
  kit::Fd fd_;
};

// One call's right to wait: ends at its deadline, when its stop token is requested, or when
// `closing` is raised. Made per call; used by one thread.
class CallWait {
 public:
  // `closing` outlives it.
  CallWait(const CallContext& context, const Alarm& closing);
  ~CallWait();
  CallWait(const CallWait&) = delete;

  // True when `fd` can be read (or written, for `to_write`) or has failed; false when the call must
  // end. Does not block if it must end already.
  bool until_readable(int fd) { return until(fd, /*to_write=*/false); }
  bool until_writable(int fd) { return until(fd, /*to_write=*/true); }

  // True if no stop was requested and the deadline is not sooner than after this time.
  bool lasts(BootClock::duration time) const {
    return !stopped() && context_.deadline - BootClock::now() >= time;
  }

  bool stopped() const { return context_.stop.stop_requested(); }
  BootTime deadline() const { return context_.deadline; }
  std::stop_token stop() const { return context_.stop; }

  // What to say when it has ended: `cancelled` if the stop token came, else `unavailable`; after
  // `sent`, when the store may have done it, `outcome_unknown`. `doing`: "waiting for an answer".
  Error ended(const std::string& doing, bool sent) const;

 private:
  bool until(int fd, bool to_write);
  void arm();
  BootClock::duration may_sleep() const;

  const CallContext& context_;
  const Alarm& closing_;
  std::optional<Alarm> stop_alarm_;
  std::optional<std::stop_callback<std::function<void()>>> on_stop_;
};

}  // namespace leasehold::waiting
