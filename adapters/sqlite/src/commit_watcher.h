// How a process hears that another one has committed: the kernel tells of writes to the file's WAL
// (inotify). It costs those who write nothing.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <thread>

#include "kit/system/fd.h"
#include "kit/threads/thread_safety.h"
#include "leasehold/store.h"

namespace leasehold::sqlite {

// Has a thread from the first watch on. What was written it does not know: any lock may be meant.
class CommitWatcher final : public ChangeHints {
 public:
  using Events = std::function<StoreEvents&()>;  // asked from the first watch on

  CommitWatcher(std::string database, Events events)
      : database_(std::move(database)), events_(std::move(events)) {}
  ~CommitWatcher() override { stop(); }

  void watch(const LockName& lock) override LEASEHOLD_EXCLUDES(mutex_);
  void unwatch(const LockName& lock) override LEASEHOLD_EXCLUDES(mutex_);
  void stop() LEASEHOLD_EXCLUDES(mutex_);

 private:
  bool open();
  void listen();
  bool rest(Millis time) const;
  bool read_commits(bool& gone) const;

  const std::string database_;
  const Events events_;
  kit::Fd files_;
  kit::Fd ending_;
  Mutex mutex_;
  bool stopped_ LEASEHOLD_GUARDED_BY(mutex_) = false;
  std::thread thread_ LEASEHOLD_GUARDED_BY(mutex_);
};

}  // namespace leasehold::sqlite
