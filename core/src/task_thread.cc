#include "task_thread.h"

#include <utility>

namespace leasehold::detail {

void TaskThread::start() {
  std::call_once(started_, [this] { thread_ = std::thread([state = state_] { run(state); }); });
}

void TaskThread::stop() {
  {
    MutexLock lock(state_->mutex);
    state_->stopping = true;
    state_->changed.notify_one();
  }
  if (!thread_.joinable()) return;
  if (thread_.get_id() == std::this_thread::get_id()) {
    thread_.detach();
  } else {
    thread_.join();
  }
}

void TaskThread::post(std::function<void()> task) {
  MutexLock lock(state_->mutex);
  if (state_->stopping) return;
  state_->tasks.push_back(std::move(task));
  state_->changed.notify_one();
}

void TaskThread::run(const std::shared_ptr<State>& state) {
  for (;;) {
    std::function<void()> task;
    {
      MutexLock lock(state->mutex);
      state->changed.wait(state->mutex, [&]() LEASEHOLD_REQUIRES(state->mutex) {
        return state->stopping || !state->tasks.empty();
      });
      if (state->stopping) return;
      task = std::move(state->tasks.front());
      state->tasks.pop_front();
    }
    task();
  }
}

}  // namespace leasehold::detail
