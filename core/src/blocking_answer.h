// Waiting for a store's answer on the thread that asks.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "kit/threads/thread_safety.h"
#include "leasehold/store.h"

namespace leasehold::detail {

// `send` is called with the completion, which may come on any thread.
template <class Reply, class Send>
Result<Reply> wait_for_answer(Send send) {
  struct Answer {
    Mutex mutex;
    ConditionVariable changed;
    std::optional<Result<Reply>> reply LEASEHOLD_GUARDED_BY(mutex);
  };
  const auto answer = std::make_shared<Answer>();
  send([answer](Result<Reply> reply) {
    MutexLock lock(answer->mutex);
    answer->reply = std::move(reply);
    answer->changed.notify_one();
  });
  MutexLock lock(answer->mutex);
  answer->changed.wait(
      answer->mutex, [&]() LEASEHOLD_REQUIRES(answer->mutex) { return answer->reply.has_value(); });
  return std::move(*answer->reply);
}

}  // namespace leasehold::detail
