#include "agenda.h"

#include <algorithm>
#include <chrono>

namespace leasehold::zookeeper {
namespace {

// A wait does not count the time that the machine is suspended, so it is looked at again.
constexpr auto kLongestWait = std::chrono::seconds(1);

}  // namespace

Agenda::Agenda() : thread_([this] { run(); }) {}

void Agenda::add(BootTime when, Task task, Key& key) {
  {
    MutexLock lock(mutex_);
    if (!closed_) {
      key = Key(when, next_++);
      const bool first = tasks_.empty() || key < tasks_.begin()->first;
      tasks_.emplace(key, std::move(task));
      if (first) changed_.notify_one();
      return;
    }
  }
  task(Reason::closing);
}

void Agenda::cancel(const Key& key) {
  Task dropped;  // destroyed without the lock
  MutexLock lock(mutex_);
  const auto found = tasks_.find(key);
  if (found == tasks_.end()) return;
  dropped = std::move(found->second);
  tasks_.erase(found);
}

void Agenda::run() {
  for (;;) {
    Task task;
    {
      MutexLock lock(mutex_);
      if (closed_) return;
      const BootTime now = BootClock::now();
      if (tasks_.empty() || tasks_.begin()->first.first > now) {
        const BootTime::duration left =
            tasks_.empty() ? kLongestWait : tasks_.begin()->first.first - now;
        const std::uint64_t seen = next_;
        changed_.wait_for(mutex_, std::min<BootTime::duration>(left, kLongestWait),
                          [&]() LEASEHOLD_REQUIRES(mutex_) { return closed_ || next_ != seen; });
        continue;
      }
      task = std::move(tasks_.begin()->second);
      tasks_.erase(tasks_.begin());
    }
    task(Reason::due);
  }
}

void Agenda::close() {
  {
    MutexLock lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  std::map<Key, Task> left;
  {
    MutexLock lock(mutex_);
    left.swap(tasks_);
  }
  for (auto& [key, task] : left) task(Reason::closing);
}

}  // namespace leasehold::zookeeper
