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
// thread runs its tasks in order. stop() waits for the tasks that run; called inside a task, it
// lets that thread end by itself after the task. Those that have not begun it drops, and destroys
// before it returns; or it waits for them too, or runs them itself if it is called inside a task.
class TaskThreads {
 public:
  enum class AtEnd { drop, finish };
  explicit TaskThreads(std::size_t most, AtEnd at_end = AtEnd::drop)
      : state_(std::make_shared<State>(most)), at_end_(at_end) {}
  ~TaskThreads() { stop(); }
  TaskThreads(const TaskThreads&) = delete;

  // Starts the first thread, if there is none; what is posted waits until then. Throws
  // std::system_error if the system has no thread left.
  void start();
  enum class Turn { in_order, before_others };
  void post(std::function<void()> task, Turn turn = Turn::in_order);  // ignored after stop()
  void stop();

 private:
  // Shared with the threads, which may outlive this object if one of them destroys it.
  using Tasks = std::deque<std::function<void()>>;
  struct State {
    explicit State(std::size_t limit) : most(limit) {}
    bool is_empty() const LEASEHOLD_REQUIRES(mutex) { return before.empty() && tasks.empty(); }
    const std::size_t most;
    Mutex mutex;
    ConditionVariable changed;
    Tasks before LEASEHOLD_GUARDED_BY(mutex);  // others
    Tasks tasks LEASEHOLD_GUARDED_BY(mutex);
    std::vector<std::thread> threads LEASEHOLD_GUARDED_BY(mutex);
    std::size_t idle LEASEHOLD_GUARDED_BY(mutex) = 0;
    bool stopping LEASEHOLD_GUARDED_BY(mutex) = false;
  };
  static void add_thread(const std::shared_ptr<State>& state) LEASEHOLD_REQUIRES(state->mutex);
  static void run(const std::shared_ptr<State>& state);

  std::shared_ptr<State> state_;
  const AtEnd at_end_;
  std::once_flag started_;
};

}  // namespace leasehold::detail
