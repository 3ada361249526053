#include "task_threads.h"

#include <system_error>
#include <utility>

namespace leasehold::detail {

void TaskThreads::add_thread(const std::shared_ptr<State>& state) {
  state->threads.emplace_back([state] { run(state); });
}

void TaskThreads::start() {
  std::call_once(started_, [this] {
    MutexLock lock(state_->mutex);
    if (!state_->stopping) add_thread(state_);
  });
}

void TaskThreads::post(std::function<void()> task, Turn turn) {
  MutexLock lock(state_->mutex);
  if (state_->stopping) return;
  (turn == Turn::in_order ? state_->tasks : state_->before).push_back(std::move(task));
  state_->changed.notify_one();
  const bool started = !state_->threads.empty();
  if (!started || state_->before.size() + state_->tasks.size() <= state_->idle) return;
  if (state_->threads.size() == state_->most) return;
  try {
    add_thread(state_);
  } catch (const std::system_error&) {
    return;  // those that there are will come to it
  }
}

void TaskThreads::stop() {
  std::vector<std::thread> ending;
  Tasks dropped;
  Tasks dropped_before;
  {
    MutexLock lock(state_->mutex);
    state_->stopping = true;
    if (at_end_ == AtEnd::drop) {
      dropped.swap(state_->tasks);
      dropped_before.swap(state_->before);
    }
    state_->changed.notify_all();
    ending.swap(state_->threads);
  }
  for (std::thread& thread : ending) {
    if (thread.get_id() == std::this_thread::get_id()) {
      run(state_);
      thread.detach();
    } else {
      thread.join();
    }
  }
}

void TaskThreads::run(const std::shared_ptr<State>& state) {
  for (;;) {
    std::function<void()> task;
    {
      MutexLock lock(state->mutex);
      ++state->idle;
      state->changed.wait(state->mutex, [&]() LEASEHOLD_REQUIRES(state->mutex) {
        return state->stopping || !state->is_empty();
      });
      --state->idle;
      if (state->is_empty()) return;
      Tasks& tasks = state->before.empty() ? state->tasks : state->before;
      task = std::move(tasks.front());
      tasks.pop_front();
    }
    task();
  }
}

}  // namespace leasehold::detail
