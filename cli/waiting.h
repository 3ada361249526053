// What a person sees and can do while the program waits for a lock.
#pragma once

#include <stop_token>
#include <thread>

#include "events.h"
#include "leasehold/client.h"
#include "signals.h"

namespace leasehold::cli {

// While it lives: a signal that asks to end cancels the wait, and on a terminal a line says who
// holds the lock. Takes signals from `signals`.
class Waiting {
 public:
  Waiting(Client client, LockName lock, Signals& signals);
  ~Waiting();

  std::stop_token stop() const { return cancel_.get_token(); }

 private:
  void watch();
  void tell_holder();

  Client client_;
  const LockName lock_;
  Signals& signals_;
  std::stop_source cancel_;
  Flag over_;
  std::thread thread_;
};

}  // namespace leasehold::cli
