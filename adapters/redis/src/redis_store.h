// The lock store on one Redis server.
#pragma once

#include <memory>
#include <optional>

#include "call_log.h"
#include "calls.h"
#include "introduction.h"
#include "leasehold/registry.h"
#include "leasehold/store.h"
#include "options.h"
#include "server.h"
#include "subscriber.h"

namespace leasehold::redis {

// Every call works on the thread it comes from, on a connection of its own. A thread of its own
// listens for wake-ups once this client has waited for a lock, and makes the calls they cause.
class RedisStore final : public Store {
 public:
  // Connects. `unavailable` or `unsupported`, with the address and the server's words.
  [[nodiscard]] static Result<std::unique_ptr<Store>> open(Options options,
                                                           const CallContext& context);
  ~RedisStore() override { close(); }

  const StoreTraits& traits() const override { return traits_; }
  void start(StoreEvents& events) override { events_ = &events; }
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
  RedisStore(Options options, std::unique_ptr<Server> server, StoreTraits traits);

  template <class Reply>
  void finish(const Completion<Reply>& done, Result<Reply> reply) const;
  Result<AcquireReply> ask(const LockKeys& keys, const AcquireCall& call,
                           const CallContext& context);
  Result<AcquireReply> ask_and_listen(const AcquireCall& call, const CallContext& context);
  Result<LockStatus> look(const LockName& lock, const CallContext& context);
  Result<LockKeys> keys_of(const LockName& lock) const;

  const Options options_;
  const StoreTraits traits_;
  const StoreId new_store_;
  std::unique_ptr<Server> server_;
  StoreEvents* events_ = nullptr;
  CallLog log_;
  Subscriber subscriber_;
};

// What such a store is worth.
StoreTraits redis_traits(const Options& options, const Introduction& introduction);

// For Adapter::open_store.
[[nodiscard]] Result<std::unique_ptr<Store>> open_redis(const Url& url, const OpenOptions& opening);

}  // namespace leasehold::redis
