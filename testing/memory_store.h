// A store in this process's memory, for tests of the driver: everything about it can be arranged.
#pragma once

#include <map>

#include "kit/threads/thread_safety.h"
#include "leasehold/store.h"

namespace leasehold::testing {

// Answers every call at once on the calling thread. Without a queue: waiters poll.
class MemoryStore final : public Store {
 public:
  explicit MemoryStore(Guarantee guarantee = Guarantee::correctness);

  const StoreTraits& traits() const override { return traits_; }
  void start(StoreEvents& events) override;
  void close() override {}
  void acquire(AcquireCall call, CallContext context, Completion<AcquireReply> done) override;
  void renew(std::vector<RenewCall> calls, CallContext context,
             Completion<std::vector<RenewReply>> done) override;
  void release(ReleaseCall call, CallContext context, Completion<ReleaseReply> done) override;

  // Tells the engine that the holder's grant is over.
  void end(const RequestId& request);

 private:
  struct Row {
    std::int64_t token = 0;
    std::optional<RequestId> holder;
    std::string owner;
    BootTime expires;
  };

  StoreTraits traits_;
  StoreEvents* events_ = nullptr;
  const StoreId id_;
  Mutex mutex_;
  std::map<LockName, Row> rows_ LEASEHOLD_GUARDED_BY(mutex_);
};

}  // namespace leasehold::testing
