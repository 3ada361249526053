// How a client hears that a lock's keys were changed: the server's tracking of what a connection
// has read (CLIENT TRACKING). It costs those who take and release locks nothing.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <set>
#include <stop_token>
#include <string>
#include <thread>

#include "keys.h"
#include "kit/threads/thread_safety.h"
#include "leasehold/store.h"
#include "server.h"

namespace leasehold::redis {

// One connection for all locks, on a thread of its own from the first watch on, which connects
// again after a failure. Says nothing if the server is older than Redis 6.
class KeyWatcher final : public ChangeHints {
 public:
  using Events = std::function<StoreEvents&()>;  // asked from the first watch on

  KeyWatcher(Server& server, std::string prefix, Events events)
      : server_(server), prefix_(std::move(prefix)), events_(std::move(events)) {}
  ~KeyWatcher() override { join(); }

  void watch(const LockName& lock) override LEASEHOLD_EXCLUDES(mutex_);
  void unwatch(const LockName& lock) override LEASEHOLD_EXCLUDES(mutex_);

  // After Server::close() was called, or is about to return.
  void join() LEASEHOLD_EXCLUDES(mutex_);

 private:
  // One command that makes the server remember that we have read a lock's keys.
  struct Reading {
    LockName lock;
    bool tell;  // and that something may have happened before
  };
  enum class End { failed_at_once, failed, never };

  void listen();
  End hear(resp::Connection& connection);
  bool begin_tracking(resp::Connection& connection);
  bool read_keys(resp::Connection& connection, const std::set<LockName>& locks, bool tell);
  bool heard(const resp::Value& value, std::set<LockName>& changed) LEASEHOLD_EXCLUDES(mutex_);
  std::set<LockName> all() LEASEHOLD_EXCLUDES(mutex_);
  std::set<LockName> take_new() LEASEHOLD_EXCLUDES(mutex_);
  std::stop_token poked() LEASEHOLD_EXCLUDES(mutex_);

  Server& server_;
  const std::string prefix_;
  const Events events_;
  std::deque<Reading> readings_;  // the thread's own: those without an answer
  Mutex mutex_;
  std::map<std::string, LockName> by_key_ LEASEHOLD_GUARDED_BY(mutex_);
  std::set<LockName> new_ LEASEHOLD_GUARDED_BY(mutex_);
  std::stop_source poke_ LEASEHOLD_GUARDED_BY(mutex_);
  std::thread thread_ LEASEHOLD_GUARDED_BY(mutex_);
};

}  // namespace leasehold::redis
