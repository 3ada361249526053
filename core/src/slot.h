// Where the answer to a request goes: to a caller who sleeps, or to a completion.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>

#include "kit/threads/doorbell.h"
#include "leasehold/async.h"
#include "leasehold/error.h"
#include "leasehold/id.h"
#include "task_threads.h"

namespace leasehold::detail {

template <class Value>
class Slot {
 public:
  explicit Slot(const std::stop_token& token) : stop(token) {}
  virtual ~Slot() = default;
  Slot(const Slot&) = delete;

  // Once, and the last that is done to it: it may be gone before this returns.
  virtual void answer(Result<Value> result) = 0;

  const std::stop_token& stop;
};

// On the stack of a caller who waits.
template <class Value>
class CallersSlot final : public Slot<Value> {
 public:
  using Slot<Value>::Slot;

  void answer(Result<Value> result) override {
    result_.emplace(std::move(result));
    bell_.ring();
  }
  Result<Value> await() {
    bell_.wait();
    return std::move(*result_);
  }

 private:
  std::optional<Result<Value>> result_;
  // Who hears it may take the result and go.
  kit::Doorbell bell_;
};

// Hands a result to what is to be done with it, on a thread of `completions`.
template <class Value>
void tell_on(TaskThreads& completions, OnResult<Value> done, Result<Value> result) {
  using Told = std::pair<OnResult<Value>, Result<Value>>;
  completions.post([told = std::make_shared<Told>(std::move(done), std::move(result))] {
    told->first(std::move(told->second));
  });
}

// Of a call that nobody waits for. It keeps itself alive from listen_to_stop() until its completion
// has returned.
template <class Value>
class CompletionSlot final : public Slot<Value>,
                             public std::enable_shared_from_this<CompletionSlot<Value>> {
 public:
  CompletionSlot(TaskThreads& completions, std::stop_token token, OnResult<Value> done)
      : Slot<Value>(stop_),
        completions_(completions),
        stop_(std::move(token)),
        done_(std::move(done)) {}

  // Before anybody can answer. `cancel` may run at once.
  void listen_to_stop(std::function<void()> cancel) {
    self_ = this->shared_from_this();
    on_stop_.emplace(stop_, std::move(cancel));
  }

  void answer(Result<Value> result) override {
    result_.emplace(std::move(result));
    completions_.post([self = std::move(self_)] { self->tell(); });
  }

  // Guarded by the lock of the core.
  std::optional<RequestId> request;

 private:
  void tell() {
    on_stop_.reset();  // not where it is answered: it waits for a callback, and that for the lock
    done_(std::move(*result_));
  }

  TaskThreads& completions_;
  const std::stop_token stop_;
  OnResult<Value> done_;
  std::optional<Result<Value>> result_;
  std::shared_ptr<CompletionSlot> self_;
  std::optional<std::stop_callback<std::function<void()>>> on_stop_;
};

}  // namespace leasehold::detail
