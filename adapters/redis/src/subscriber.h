// How a waiter hears that it should ask again: one subscription per client.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include "kit/threads/thread_safety.h"
#include "leasehold/id.h"
#include "leasehold/store.h"
#include "server.h"

namespace leasehold::redis {

// Thread safe. Has a thread of its own from the first wait on, which listens, calls `on_wake`, and
// connects again after a failure.
class Subscriber {
 public:
  using OnWake = std::function<void(const RequestId&)>;

  Subscriber(Server& server, std::string channel, OnWake on_wake)
      : server_(server), name_(std::move(channel)), on_wake_(std::move(on_wake)) {}
  ~Subscriber() { join(); }

  // Begins to listen, and returns when it does, or when it failed or the call must end.
  void begin(const CallContext& context) LEASEHOLD_EXCLUDES(mutex_);
  bool began() const { return began_; }

  // The channel to be told at; kNoChannel while nobody would hear.
  std::string channel() const;

  // After Server::close() was called, or is about to return.
  void join();

 private:
  enum class Ears { closed, opening, open };
  void listen();
  void hear(resp::Connection& connection);
  void set(Ears ears) LEASEHOLD_EXCLUDES(mutex_);

  Server& server_;
  const std::string name_;
  const OnWake on_wake_;
  std::atomic<bool> began_ = false;
  std::atomic<Ears> ears_ = Ears::closed;
  Mutex mutex_;
  ConditionVariable changed_;
  std::thread thread_ LEASEHOLD_GUARDED_BY(mutex_);
};

}  // namespace leasehold::redis
