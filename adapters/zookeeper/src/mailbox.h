// Waiting for an answer that comes on the library's thread.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "kit/threads/thread_safety.h"
#include "leasehold/store.h"

namespace leasehold::zookeeper {

// Where an answer comes to, also when nobody waits any more.
template <class Answer>
class Mailbox {
 public:
  void fill(Answer answer) LEASEHOLD_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (answer_) return;
    answer_ = std::move(answer);
    came_.notify_all();
  }
  std::optional<Answer> wait(const CallContext& context) LEASEHOLD_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    came_.wait_for(mutex_, context.stop, context.deadline - BootClock::now(),
                   [this]() LEASEHOLD_REQUIRES(mutex_) { return answer_.has_value(); });
    return std::exchange(answer_, std::nullopt);
  }

 private:
  Mutex mutex_;
  ConditionVariable came_;
  std::optional<Answer> answer_ LEASEHOLD_GUARDED_BY(mutex_);
};

// Nothing if the time was over first.
template <class Answer, class Ask>
std::optional<Answer> answer_to(const CallContext& context, Ask ask) {
  const auto mailbox = std::make_shared<Mailbox<Answer>>();
  ask([mailbox](Answer answer) { mailbox->fill(std::move(answer)); });
  return mailbox->wait(context);
}

}  // namespace leasehold::zookeeper
