// The lock store on one Redis server.
#pragma once

#include <memory>
#include <optional>

#include "call_log.h"
#include "calls.h"
#include "introduction.h"
#include "leasehold/registry.h"
#include "options.h"
#include "server.h"
#include "store_base/blocking_store.h"
#include "subscriber.h"

namespace leasehold::redis {

// Every call works on the thread it comes from, on a connection of its own. A thread of its own
// listens for wake-ups once this client has waited for a lock, and makes the calls they cause.
class RedisStore final : public BlockingStore {
 public:
  // Connects. `unavailable` or `unsupported`, with the address and the server's words.
  [[nodiscard]] static Result<std::unique_ptr<Store>> open(Options options,
                                                           const CallContext& context);
  ~RedisStore() override { close(); }

  const StoreTraits& traits() const override { return traits_; }
  OnceRecords* once_records() override { return own_once_records(); }

 private:
  RedisStore(Options options, std::unique_ptr<Server> server, StoreTraits traits);

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

  Result<AcquireReply> ask(const LockKeys& keys, const AcquireCall& call,
                           const CallContext& context);
  Result<AcquireReply> ask_and_listen(const AcquireCall& call, const CallContext& context);

  const Options options_;
  const StoreTraits traits_;
  const StoreId new_store_;
  std::unique_ptr<Server> server_;
  CallLog log_;
  Subscriber subscriber_;
};

// What such a store is worth.
StoreTraits redis_traits(const Options& options, const Introduction& introduction);

// For Adapter::open_store.
[[nodiscard]] Result<std::unique_ptr<Store>> open_redis(const Url& url, const OpenOptions& opening);

}  // namespace leasehold::redis
