// A store in this process's memory, for tests of the driver: everything about it can be arranged.
#pragma once

#include <atomic>
#include <map>
#include <set>

#include "kit/threads/thread_safety.h"
#include "store_base/blocking_store.h"

namespace leasehold::testing {

// Answers every call at once on the calling thread. Without a queue: waiters poll.
class MemoryStore final : public BlockingStore, private ChangeHints {
 public:
  explicit MemoryStore(Guarantee guarantee = Guarantee::correctness);

  ~MemoryStore() override { close(); }

  const StoreTraits& traits() const override { return traits_; }

  // Leases of any length last no longer.
  void give_at_most(Millis ttl);
  std::optional<RequestId> holder(const LockName& lock);

  // Ends the holder's grant, and does not tell.
  void take_away(const RequestId& request);
  // The same, and tells the engine.
  void end(const RequestId& request);

  // From now on it has ChangeHints. Before it is given to a client.
  void have_hints() { has_hints_ = true; }
  ChangeHints* change_hints() override { return has_hints_ ? this : nullptr; }
  // As if the connection on which it tells had been lost.
  void lose_hints();
  std::size_t hinted();  // how many locks

 private:
  Result<AcquireReply> do_acquire(const AcquireCall& call, const CallContext& context) override;
  Result<std::vector<RenewReply>> do_renew(const std::vector<RenewCall>& calls,
                                           const CallContext& context) override;
  Result<ReleaseReply> do_release(const ReleaseCall& call, const CallContext& context) override;
  Result<LockStatus> do_inspect(const InspectCall& call, const CallContext& context) override;
  Result<std::vector<LockStatus>> do_list(const CallContext& context) override;
  void do_close() override {}

  void watch(const LockName& lock) override;
  void unwatch(const LockName& lock) override;
  void tell_change(const LockName& lock);

  struct Row {
    std::int64_t token = 0;
    std::optional<RequestId> holder;
    std::string owner;
    BootTime expires;
  };

  LockStatus status_of(const LockName& lock) LEASEHOLD_REQUIRES(mutex_);

  StoreTraits traits_;
  bool has_hints_ = false;
  std::atomic<bool> tells_ = false;
  const StoreId id_;
  Mutex mutex_;
  std::map<LockName, Row> rows_ LEASEHOLD_GUARDED_BY(mutex_);
  Millis longest_ LEASEHOLD_GUARDED_BY(mutex_) = Millis::max();
  std::set<LockName> hinted_ LEASEHOLD_GUARDED_BY(mutex_);
};

}  // namespace leasehold::testing
