// How a client hears that the holders of a lock may have changed: watches of the locks' folders.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>

#include "agenda.h"
#include "kit/threads/thread_safety.h"
#include "leasehold/store.h"
#include "session.h"

namespace leasehold::zookeeper {

// A watch tells once, and is set anew. While the connection is broken nothing is told, and the
// library sets the watches again in the same session; in another one they are set anew here.
class LockWatches final : public ChangeHints {
 public:
  struct Store {
    std::function<Result<std::shared_ptr<Session>>()> session;
    std::function<std::string(const LockName&)> folder;
    std::function<StoreEvents*()> events;  // null when it is being closed
  };
  LockWatches(Store store, Agenda& agenda) : store_(std::move(store)), agenda_(agenda) {}

  void watch(const LockName& lock) override LEASEHOLD_EXCLUDES(mutex_);
  void unwatch(const LockName& lock) override LEASEHOLD_EXCLUDES(mutex_);

  // False if somebody else watches under this id.
  bool touched(const RequestId& id) LEASEHOLD_EXCLUDES(mutex_);
  void session_over(const std::shared_ptr<Session>& session) LEASEHOLD_EXCLUDES(mutex_);

 private:
  struct Entry {
    LockName lock;
    std::weak_ptr<Session> set_in = {};  // none: it is not set, or is being set
  };

  std::optional<LockName> lock_of(const RequestId& id) LEASEHOLD_EXCLUDES(mutex_);
  void set(const RequestId& id);
  void set_in(const std::shared_ptr<Session>& session, const RequestId& id);
  void set_for_folder(const std::shared_ptr<Session>& session, const RequestId& id,
                      const std::string& folder);
  void set_later(const RequestId& id);
  void is_set(const std::shared_ptr<Session>& session, const RequestId& id)
      LEASEHOLD_EXCLUDES(mutex_);

  const Store store_;
  Agenda& agenda_;
  Mutex mutex_;
  std::map<LockName, RequestId> by_lock_ LEASEHOLD_GUARDED_BY(mutex_);
  std::unordered_map<RequestId, Entry> entries_ LEASEHOLD_GUARDED_BY(mutex_);
  bool tells_ LEASEHOLD_GUARDED_BY(mutex_) = false;
};

}  // namespace leasehold::zookeeper
