// What a person sees and can do while the program waits for a store or a lock.
#pragma once

#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

#include "cli/command/events.h"
#include "cli/command/signals.h"
#include "leasehold/client.h"

namespace leasehold::cli {

// While it lives, a signal that asks to end cancels the wait, and Ctrl-Z stops the program. Takes
// signals from `signals`.
class Waiting {
 public:
  struct For {
    Client client;
    LockName lock;
  };
  explicit Waiting(Signals& signals) : Waiting(signals, std::nullopt) {}
  // And after a while a line says who holds the lock.
  Waiting(Signals& signals, std::optional<For> told);
  ~Waiting();

  std::stop_token stop() const { return cancel_.get_token(); }

  // A signal that has come before this call has requested the stop when it returns.
  void look() { take_signals(); }

  // Takes no more signals. True if one came, perhaps too late to cancel anything. Does not wait for
  // the thread, as a destructor must: that would be a good part of a short run.
  bool end();

 private:
  void watch();
  void tell_holder();
  bool take_signals();

  Signals& signals_;
  std::optional<For> told_;
  std::mutex taking_;
  bool ended_ = false;  // under taking_
  std::stop_source cancel_;
  Flag over_;
  std::thread thread_;
};

}  // namespace leasehold::cli
