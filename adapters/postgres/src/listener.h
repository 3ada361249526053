// The one connection of a client on which the database wakes its waiters.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <thread>

#include "connection.h"
#include "kit/threads/thread_safety.h"
#include "leasehold/id.h"
#include "leasehold/random.h"
#include "waiting/call_wait.h"

namespace leasehold::postgres {

// Listens on a channel of its own, on a thread of its own, from the first wait on. The session
// holds an advisory lock, by which others see whether this client still listens. Thread safe.
class Listener {
 public:
  using Connect = std::function<Result<std::unique_ptr<Connection>>(const CallContext&)>;
  using Nudge = std::function<void(const RequestId&)>;

  Listener(Connect connect, Nudge nudge, Random& random, const waiting::Alarm& closing);
  ~Listener() { stop(); }

  // The number of this client's channel and advisory lock, if it listens; starts listening, and
  // waits for that up to the call's deadline. None: the waiter has to look for itself.
  std::optional<std::int64_t> presence(const CallContext& context);

  // Who is nudged when notifications may have been missed.
  void waits(const RequestId& request);
  void waits_no_more(const RequestId& request);

  // After `closing` was raised.
  void stop();

 private:
  enum class State { idle, connecting, listening, failed };

  void listen();
  bool listen_once();
  void nudge_all();
  void set(State state);
  bool stopping(Millis wait) const;

  const Connect connect_;
  const Nudge nudge_;
  const std::int64_t presence_;
  const waiting::Alarm& closing_;
  bool has_listened_ = false;  // the thread's own
  Mutex mutex_;
  ConditionVariable changed_;
  State state_ LEASEHOLD_GUARDED_BY(mutex_) = State::idle;
  bool stopped_ LEASEHOLD_GUARDED_BY(mutex_) = false;
  std::set<RequestId> waiting_ LEASEHOLD_GUARDED_BY(mutex_);
  std::thread thread_ LEASEHOLD_GUARDED_BY(mutex_);
};

}  // namespace leasehold::postgres
