// The lock store on a majority of independent Redis servers.
#pragma once

#include <memory>
#include <optional>
#include <set>

#include "call_numbers.h"
#include "calls.h"
#include "known_store.h"
#include "leasehold/registry.h"
#include "leftovers.h"
#include "options.h"
#include "quorum.h"
#include "store_base/blocking_store.h"

namespace leasehold::redis {

// Every call works on the thread it comes from, and asks all nodes at once. A node that cannot be
// reached is a lost vote. A thread of its own takes votes back that a silent node may have.
class RedlockStore final : public BlockingStore {
 public:
  // Connects to all at once. `unavailable` unless a majority can be used, or if a node is too old
  // ever to be; `unsupported` if one is a cluster or a sentinel.
  [[nodiscard]] static Result<std::unique_ptr<Store>> open(Options options,
                                                           const CallContext& context);
  ~RedlockStore() override { close(); }

  const StoreTraits& traits() const override { return traits_; }
  OnceRecords* once_records() override { return own_once_records(); }

 private:
  RedlockStore(Options options, std::unique_ptr<Quorum> quorum, StoreTraits traits);

  Result<AcquireReply> do_acquire(const AcquireCall& call, const CallContext& context) override;
  Result<std::vector<RenewReply>> do_renew(const std::vector<RenewCall>& calls,
                                           const CallContext& context) override;
  Result<ReleaseReply> do_release(const ReleaseCall& call, const CallContext& context) override;
  Result<LockStatus> do_inspect(const InspectCall& call, const CallContext& context) override;
  Result<std::vector<LockStatus>> do_list(const CallContext& context) override;
  Result<ReleaseReply> do_force_release(const ForceReleaseCall& call,
                                        const CallContext& context) override;
  Result<StoreId> do_rotate_store_id(const CallContext& context) override;
  Result<std::optional<OnceRecord>> do_recall(const RecallCall& call,
                                              const CallContext& context) override;
  Status do_record(const RecordCall& call, const CallContext& context) override;
  Result<std::vector<std::string>> do_list_keys(const ListKeysCall& call,
                                                const CallContext& context) override;
  Result<bool> do_forget(const ForgetCall& call, const CallContext& context) override;
  void do_close() override;

  void take_back(const LockKeys& keys, const AcquireCall& call, const Answers& votes,
                 const CallContext& context);
  Result<ReleaseReply> release_all(const Question& question, const CallContext& context);
  void insist(const Question& question, const Answers& answers);
  Result<std::set<LockName>> used_locks(const CallContext& context);

  const Options options_;
  const StoreTraits traits_;
  KnownStore store_;
  std::unique_ptr<Quorum> quorum_;
  CallNumbers numbers_;
  Leftovers leftovers_;
};

// What such a store is worth.
StoreTraits redlock_traits(const Options& options);

// For Adapter::open_store.
[[nodiscard]] Result<std::unique_ptr<Store>> open_redlock(const Url& url,
                                                          const OpenOptions& opening);

}  // namespace leasehold::redis
