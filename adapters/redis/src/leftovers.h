// Votes that could not be taken back at once.
#pragma once

#include <deque>
#include <thread>
#include <vector>

#include "kit/threads/thread_safety.h"
#include "quorum.h"
#include "waiting/call_wait.h"

namespace leasehold::redis {

// A node that does not answer may have a vote of a lock that is free again. It would stand until
// its TTL is over; so the release is repeated until the node has answered. Thread safe. Has a
// thread of its own from the first leftover on.
class Leftovers {
 public:
  explicit Leftovers(Quorum& quorum) : quorum_(quorum) {}
  ~Leftovers() { close(); }

  void add(std::size_t node, Question release) LEASEHOLD_EXCLUDES(mutex_);
  void close() LEASEHOLD_EXCLUDES(mutex_);

 private:
  struct Item {
    std::size_t node;
    Question release;
    BootTime forget_at;
  };
  void run();
  bool try_again(const Item& item);
  std::deque<Item> take_all() LEASEHOLD_EXCLUDES(mutex_);
  void put_back(std::vector<Item> items) LEASEHOLD_EXCLUDES(mutex_);

  Quorum& quorum_;
  Mutex mutex_;
  ConditionVariable changed_;
  bool closed_ LEASEHOLD_GUARDED_BY(mutex_) = false;
  std::deque<Item> items_ LEASEHOLD_GUARDED_BY(mutex_);
  std::thread thread_ LEASEHOLD_GUARDED_BY(mutex_);
};

}  // namespace leasehold::redis
