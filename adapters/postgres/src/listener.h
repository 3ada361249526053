// The one connection of a client on which the database wakes its waiters.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <thread>

#include "connection.h"
#include "kit/system/fd.h"
#include "kit/threads/thread_safety.h"
#include "leasehold/id.h"
#include "leasehold/random.h"
#include "waiting/call_wait.h"

namespace leasehold::postgres {

// Listens on a channel of its own, on a thread of its own, from the first wait on. The session
// holds an advisory lock, by which others see whether this client still listens. While a lock that
// is waited for changes hands quickly, the session dozes in a statement instead, in which it can be
// woken alone. Thread safe.
class Listener {
 public:
  // The number of this client's channel and advisory lock, and the server's process.
  struct Presence {
    std::int64_t number;
    int pid;
  };
  struct Statements {
    Statement doze;           // takes the number, the requests that wait, and the milliseconds
    Statement first_in_line;  // takes the number and the requests
  };
  using Connect = std::function<Result<std::unique_ptr<Connection>>(const CallContext&)>;
  using Nudge = std::function<void(const RequestId&)>;

  Listener(Statements statements, Connect connect, Nudge nudge, Random& random,
           const waiting::Alarm& closing);
  ~Listener() { stop(); }

  // If it listens; starts listening, and waits for that up to the call's deadline. None: the waiter
  // has to look for itself.
  std::optional<Presence> presence(const CallContext& context);

  // What waits will not have to wait long.
  void doze();

  // Who is nudged when notifications may have been missed.
  void waits(const RequestId& request);
  void waits_no_more(const RequestId& request);

  // After `closing` was raised.
  void stop();

 private:
  enum class State { idle, connecting, listening, failed };

  void listen();
  bool listen_once();
  void watch(Connection& session);
  bool send_doze(Connection& session);
  bool end_doze(Connection& session);
  bool nudge_first(Connection& session);
  bool nudge_notified(Connection& session);
  bool wants_to_doze();
  bool await(const Connection& session);
  std::set<RequestId> all_that_wait();
  bool nudge(const std::set<RequestId>& requests);
  void set(State state, int pid = 0);
  bool stopping(Millis wait) const;

  const Statements statements_;
  const Connect connect_;
  const Nudge nudge_;
  const std::int64_t number_;
  const waiting::Alarm& closing_;
  bool has_listened_ = false;  // the thread's own
  kit::Fd poke_;
  Mutex mutex_;
  ConditionVariable changed_;
  State state_ LEASEHOLD_GUARDED_BY(mutex_) = State::idle;
  int pid_ LEASEHOLD_GUARDED_BY(mutex_) = 0;
  bool stopped_ LEASEHOLD_GUARDED_BY(mutex_) = false;
  bool to_doze_ LEASEHOLD_GUARDED_BY(mutex_) = false;
  std::set<RequestId> waiting_ LEASEHOLD_GUARDED_BY(mutex_);
  std::thread thread_ LEASEHOLD_GUARDED_BY(mutex_);
};

}  // namespace leasehold::postgres
