// The lock store on a majority of independent Redis servers.
#pragma once

#include <memory>
#include <optional>
#include <set>

#include "call_log.h"
#include "calls.h"
#include "leasehold/registry.h"
#include "leasehold/store.h"
#include "leftovers.h"
#include "options.h"
#include "quorum.h"

namespace leasehold::redis {

// Every call works on the thread it comes from, and asks all nodes at once. A node that cannot be
// reached is a lost vote. A thread of its own takes votes back that a silent node may have.
class RedlockStore final : public Store {
 public:
  // Connects to all at once. `unavailable` unless a majority can be used, or if a node is too old
  // ever to be; `unsupported` if one is a cluster or a sentinel.
  [[nodiscard]] static Result<std::unique_ptr<Store>> open(Options options,
                                                           const CallContext& context);
  ~RedlockStore() override { close(); }

  const StoreTraits& traits() const override { return traits_; }
  void start(StoreEvents&) override {}  // nobody is told anything unasked
  void close() override;
  void acquire(AcquireCall call, CallContext context, Completion<AcquireReply> done) override;
  void renew(std::vector<RenewCall> calls, CallContext context,
             Completion<std::vector<RenewReply>> done) override;
  void release(ReleaseCall call, CallContext context, Completion<ReleaseReply> done) override;
  void inspect(LockName lock, CallContext context, Completion<LockStatus> done) override;
  void list(CallContext context, Completion<std::vector<LockStatus>> done) override;
  void force_release(LockName lock, RequestId seen, CallContext context,
                     Completion<ReleaseReply> done) override;
  void rotate_lineage(CallContext context, Completion<StoreId> done) override;
  void recall(LockName lock, std::string key, CallContext context,
              Completion<std::optional<OnceRecord>> done) override;
  void record(LockName lock, RequestId request, std::string key, OnceRecord what,
              CallContext context, Completion<std::monostate> done) override;

 private:
  RedlockStore(Options options, std::unique_ptr<Quorum> quorum, StoreTraits traits);

  Result<LockKeys> keys_of(const LockName& lock) const;
  Result<AcquireReply> vote(const AcquireCall& call, const CallContext& context);
  void take_back(const LockKeys& keys, const AcquireCall& call, const Answers& votes,
                 const CallContext& context);
  Result<ReleaseReply> release_all(const Question& question, const CallContext& context,
                                   bool insist);
  Result<LockStatus> look(const LockName& lock, const CallContext& context);
  Result<std::set<LockName>> used_locks(const CallContext& context);

  const Options options_;
  const StoreTraits traits_;
  const StoreId new_store_;
  std::unique_ptr<Quorum> quorum_;
  CallLog log_;
  Leftovers leftovers_;
};

// What such a store is worth.
StoreTraits redlock_traits(const Options& options);

// For Adapter::open_store.
[[nodiscard]] Result<std::unique_ptr<Store>> open_redlock(const Url& url,
                                                          const OpenOptions& opening);

}  // namespace leasehold::redis
