// Any store, with faults at chosen operations.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>

#include "kit/threads/thread_safety.h"
#include "leasehold/store.h"

namespace leasehold::testing {

enum class Operation { acquire, renew, release, force_release, inspect, list };

enum class Fault {
  lose_reply,    // it is done, and the answer is lost: outcome_unknown
  lose_request,  // it is not done, but nobody can tell: outcome_unknown
  refuse,        // it is not done, and that is known: unavailable
  hang,          // blocks the calling thread until let_go() or close, then it is done
};

// How a test sets the faults. Thread safe.
class Faults {
 public:
  // The next `times` calls of `operation` suffer `fault`.
  void next(Operation operation, Fault fault, int times = 1);
  // Every call from now on.
  void always(Operation operation, Fault fault);
  void never(Operation operation);

  // How many calls there were, with and without a fault.
  int calls(Operation operation);
  // Throws std::runtime_error if there are not so many in time.
  void wait_for_calls(Operation operation, int count, Millis patience = std::chrono::seconds(30));
  // The same for calls without a fault that have been answered.
  void wait_for_answers(Operation operation, int count, Millis patience);

  // Ends all hanging, now and later.
  void let_go();
  void wait_until_one_hangs();

  std::optional<Fault> take(Operation operation);
  void answered(Operation operation);
  void hang();

 private:
  void wait_for(std::map<Operation, int>& which, Operation operation, int count, Millis patience)
      LEASEHOLD_REQUIRES(mutex_);

  Mutex mutex_;
  ConditionVariable changed_;
  std::map<Operation, std::deque<Fault>> planned_ LEASEHOLD_GUARDED_BY(mutex_);
  std::map<Operation, Fault> standing_ LEASEHOLD_GUARDED_BY(mutex_);
  std::map<Operation, int> calls_ LEASEHOLD_GUARDED_BY(mutex_);
  std::map<Operation, int> answers_ LEASEHOLD_GUARDED_BY(mutex_);
  int hanging_ LEASEHOLD_GUARDED_BY(mutex_) = 0;
  bool let_go_ LEASEHOLD_GUARDED_BY(mutex_) = false;
};

std::unique_ptr<Store> with_faults(std::unique_ptr<Store> store, std::shared_ptr<Faults> faults);

}  // namespace leasehold::testing
