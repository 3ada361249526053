// What an observer was told, for a test to wait for.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "kit/threads/thread_safety.h"
#include "leasehold/watch.h"

namespace leasehold::testing {

// Copies share what was told. Thread safe.
class Observed {
 public:
  using Told = Result<LockStatus>;

  LockObserver one() {
    return [all = all_](const Told& told) { all->add(told); };
  }
  // Of a prefix: each lock by itself.
  LocksObserver many() {
    return [all = all_](const Result<std::vector<LockStatus>>& told) {
      if (!told) return all->add(fail(told.error()));
      for (const LockStatus& status : *told) all->add(status);
    };
  }

  // Whether something of this kind is told, beginning behind what the last wait found. That is all
  // there is to say of it after half a minute.
  bool wait_for(const std::function<bool(const Told&)>& meant) { return all_->wait_for(meant); }
  bool wait_until_held_by(const RequestId& request) {
    return wait_for([&](const Told& told) {
      return told && told->holder() && told->holder()->request == request;
    });
  }
  bool wait_until_free() {
    return wait_for([](const Told& told) { return told && told->holders.empty(); });
  }
  bool wait_until_unseen() {
    return wait_for([](const Told& told) { return !told; });
  }
  std::size_t count() { return all_->count(); }

 private:
  struct All {
    Mutex mutex;
    ConditionVariable changed;
    std::vector<Told> told LEASEHOLD_GUARDED_BY(mutex);
    std::size_t seen LEASEHOLD_GUARDED_BY(mutex) = 0;

    void add(Told one) {
      const MutexLock lock(mutex);
      told.push_back(std::move(one));
      changed.notify_all();
    }
    std::size_t count() {
      const MutexLock lock(mutex);
      return told.size();
    }
    bool wait_for(const std::function<bool(const Told&)>& meant) {
      const MutexLock lock(mutex);
      return changed.wait_for(mutex, std::chrono::seconds(30), [&]() LEASEHOLD_REQUIRES(mutex) {
        while (seen < told.size()) {
          if (meant(told[seen++])) return true;
        }
        return false;
      });
    }
  };
  std::shared_ptr<All> all_ = std::make_shared<All>();
};

}  // namespace leasehold::testing
