// What is to be done later, and a thread that does it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <thread>
#include <utility>

#include "kit/threads/thread_safety.h"
#include "leasehold/time.h"

namespace leasehold::zookeeper {

// Thread safe. Tasks run one after the other, with no lock held, and must not block for long.
class Agenda {
 public:
  enum class Reason { due, closing };
  using Task = std::function<void(Reason)>;
  using Key = std::pair<BootTime, std::uint64_t>;

  Agenda();  // throws std::system_error if no thread can be made
  ~Agenda() { close(); }
  Agenda(const Agenda&) = delete;

  // After close() the task runs here and now, with `closing`.
  Key add(BootTime when, Task task) LEASEHOLD_EXCLUDES(mutex_) {
    Key key;
    add(when, std::move(task), key);
    return key;
  }
  // The same, for a task that reads `key`: it is there before the task runs.
  void add(BootTime when, Task task, Key& key) LEASEHOLD_EXCLUDES(mutex_);
  // Does nothing if it has run, or runs now.
  void cancel(const Key& key) LEASEHOLD_EXCLUDES(mutex_);

  // Waits for the task that runs, then runs what is left with `closing`. Not from a task.
  void close() LEASEHOLD_EXCLUDES(mutex_);

 private:
  void run();

  Mutex mutex_;
  ConditionVariable changed_;
  std::map<Key, Task> tasks_ LEASEHOLD_GUARDED_BY(mutex_);
  std::uint64_t next_ LEASEHOLD_GUARDED_BY(mutex_) = 0;
  bool closed_ LEASEHOLD_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace leasehold::zookeeper
