// One thread that runs tasks in order.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "leasehold/detail/thread_safety.h"

namespace leasehold::detail {

// Thread safe. stop() drops the tasks that have not begun and waits for the one that runs; called
// inside a task, it lets the thread end by itself after that task.
class TaskThread {
 public:
  TaskThread() : state_(std::make_shared<State>()) {}
  ~TaskThread() { stop(); }
  TaskThread(const TaskThread&) = delete;

  // What is posted waits until it has been started. Throws std::system_error if there is no thread
  // to be had; otherwise starting again does nothing.
  void start();
  void post(std::function<void()> task);  // ignored after stop()
  void stop();

 private:
  // Shared with the thread, which may outlive this object if it destroys it.
  struct State {
    Mutex mutex;
    ConditionVariable changed;
    std::deque<std::function<void()>> tasks LEASEHOLD_GUARDED_BY(mutex);
    bool stopping LEASEHOLD_GUARDED_BY(mutex) = false;
  };
  static void run(const std::shared_ptr<State>& state);

  std::shared_ptr<State> state_;
  std::once_flag started_;
  std::thread thread_;
};

}  // namespace leasehold::detail
