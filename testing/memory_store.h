// A store in this process's memory, for tests of the driver: everything about it can be arranged.
#pragma once

#include <map>

#include "kit/threads/thread_safety.h"
#include "store_base/blocking_store.h"

namespace leasehold::testing {

// Answers every call at once on the calling thread. Without a queue: waiters poll.
class MemoryStore final : public BlockingStore {
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

 private:
  Result<AcquireReply> do_acquire(const AcquireCall& call, const CallContext& context) override;
  Result<std::vector<RenewReply>> do_renew(const std::vector<RenewCall>& calls,
                                           const CallContext& context) override;
  Result<ReleaseReply> do_release(const ReleaseCall& call, const CallContext& context) override;
  void do_close() override {}

  struct Row {
    std::int64_t token = 0;
    std::optional<RequestId> holder;
    std::string owner;
    BootTime expires;
  };

  StoreTraits traits_;
  const StoreId id_;
  Mutex mutex_;
  std::map<LockName, Row> rows_ LEASEHOLD_GUARDED_BY(mutex_);
  Millis longest_ LEASEHOLD_GUARDED_BY(mutex_) = Millis::max();
};

}  // namespace leasehold::testing
