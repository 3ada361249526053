// The thin driver of watch_table.h: one thread looks, a few call the observers.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <variant>

#include "kit/threads/thread_safety.h"
#include "leasehold/watch.h"
#include "task_threads.h"
#include "watch/watch_table.h"

namespace leasehold::detail {

inline constexpr Millis kSoonestLook{10};
inline constexpr Millis kLatestLook = std::chrono::hours(1);

// One who is told. What is new waits here until the call before has returned; the latest state
// takes the place of an earlier one.
struct Observer {
  using News = Result<std::vector<LockStatus>>;
  using Callback = LocksObserver;

  explicit Observer(Callback told) : callback(std::move(told)) {}

  // True if somebody must come to deliver().
  bool add(News news) LEASEHOLD_EXCLUDES(mutex);
  // Calls until nothing is new.
  void deliver() LEASEHOLD_EXCLUDES(mutex);
  // Returns when no call runs but one that this thread is in.
  void stop() LEASEHOLD_EXCLUDES(mutex);

  watch::Number number = 0;  // the hub's

  Mutex mutex;
  ConditionVariable changed;
  Callback callback LEASEHOLD_GUARDED_BY(mutex);             // while a call runs: that call's
  std::optional<Error> failure LEASEHOLD_GUARDED_BY(mutex);  // to be told before the states
  std::map<std::string, LockStatus> states LEASEHOLD_GUARDED_BY(mutex);
  bool has_states LEASEHOLD_GUARDED_BY(mutex) = false;  // there may be none to tell of
  bool posted LEASEHOLD_GUARDED_BY(mutex) = false;
  bool stopped LEASEHOLD_GUARDED_BY(mutex) = false;
  std::thread::id runs_on LEASEHOLD_GUARDED_BY(mutex);

 private:
  std::optional<News> take() LEASEHOLD_REQUIRES(mutex);
};

struct Prefix {
  std::string text;
};
using Watched = std::variant<LockName, Prefix>;

// Thread safe. Has no thread before the first watch.
class WatchHub {
 public:
  WatchHub(Store& store, const Clock& clock) : store_(store), clock_(clock) {}
  ~WatchHub() { stop(); }

  // Throws std::system_error if the system has no thread left.
  std::shared_ptr<Observer> add(const Watched& what, std::optional<Millis> every,
                                Observer::Callback callback) LEASEHOLD_EXCLUDES(mutex_);
  void remove(const std::shared_ptr<Observer>& observer) LEASEHOLD_EXCLUDES(mutex_);

  // What the store tells.
  void changed(const LockName& lock) LEASEHOLD_EXCLUDES(mutex_);
  void any_changed() LEASEHOLD_EXCLUDES(mutex_);
  void tells() LEASEHOLD_EXCLUDES(mutex_);
  void tells_no_more(const Error& why) LEASEHOLD_EXCLUDES(mutex_);

  // After the store was closed.
  void stop() LEASEHOLD_EXCLUDES(mutex_);

 private:
  template <class Event>
  void feed(Event event) LEASEHOLD_EXCLUDES(mutex_);
  void settle() LEASEHOLD_REQUIRES(mutex_);
  void start() LEASEHOLD_REQUIRES(mutex_);
  void work() LEASEHOLD_EXCLUDES(mutex_);
  bool await_look() LEASEHOLD_EXCLUDES(mutex_);
  void tell_interests() LEASEHOLD_EXCLUDES(mutex_);
  void look(const watch::Look& what) LEASEHOLD_EXCLUDES(mutex_);
  void look_one_by_one(const watch::Look& what) LEASEHOLD_EXCLUDES(mutex_);

  Store& store_;
  const Clock& clock_;
  Mutex mutex_;
  ConditionVariable changed_;
  watch::Table table_ LEASEHOLD_GUARDED_BY(mutex_);
  std::map<watch::Number, std::shared_ptr<Observer>> observers_ LEASEHOLD_GUARDED_BY(mutex_);
  bool stopping_ LEASEHOLD_GUARDED_BY(mutex_) = false;
  std::thread looker_ LEASEHOLD_GUARDED_BY(mutex_);
  TaskThreads callbacks_{4};
};

}  // namespace leasehold::detail
