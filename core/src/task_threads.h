// Some threads that run tasks.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "kit/threads/thread_safety.h"

namespace leasehold::detail {

// Thread safe. A task that finds no thread idle starts another one, up to `most` of them; one
// thread runs its tasks in order. stop() drops the tasks that have not begun and waits for those
// that run; called inside a task, it lets that thread end by itself after the task.
class TaskThreads {
 public:
  explicit TaskThreads(std::size_t most) : state_(std::make_shared<State>(most)) {}
  ~TaskThreads() { stop(); }
  TaskThreads(const TaskThreads&) = delete;

  // Starts the first thread, if there is none; what is posted waits until then. Throws
  // std::system_error if the system has no thread left.
  void start();
  void post(std::function<void()> task);  // ignored after stop()
  void stop();

 private:
  // Shared with the threads, which may outlive this object if one of them destroys it.
  struct State {
    explicit State(std::size_t limit) : most(limit) {}
    const std::size_t most;
    Mutex mutex;
    ConditionVariable changed;
    std::deque<std::function<void()>> tasks LEASEHOLD_GUARDED_BY(mutex);
    std::vector<std::thread> threads LEASEHOLD_GUARDED_BY(mutex);
    std::size_t idle LEASEHOLD_GUARDED_BY(mutex) = 0;
    bool stopping LEASEHOLD_GUARDED_BY(mutex) = false;
  };
  static void add_thread(const std::shared_ptr<State>& state) LEASEHOLD_REQUIRES(state->mutex);
  static void run(const std::shared_ptr<State>& state);

  std::shared_ptr<State> state_;
  std::once_flag started_;
};

}  // namespace leasehold::detail
