// The lock store of lease rows: mode=rows.
#pragma once

#include <memory>

#include "connection.h"
#include "leasehold/detail/connection_pool.h"
#include "leasehold/store.h"
#include "listener.h"
#include "options.h"
#include "server.h"

namespace leasehold::postgres {

// Every call works on the thread it comes from, on a connection that it has alone, and is one round
// trip. A thread of its own listens for wake-ups once this client has waited for a lock.
class RowStore final : public Store {
 public:
  // With the schema in place. `unavailable` or `unsupported`, with the server's own words.
  [[nodiscard]] static Result<std::unique_ptr<Store>> open(Options options, Random& random);
  ~RowStore() override { close(); }

  const StoreTraits& traits() const override { return server_.traits; }
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
  using Pool = detail::ConnectionPool<Connection>;
  RowStore(Options options, Random& random);

  Result<std::unique_ptr<Connection>> connect(const CallContext& context);
  Status look_and_prepare();
  // Runs the statement on a connection of the pool.
  Result<Rows> ask(const Statement& statement, Parameters parameters, const CallContext& context);
  Result<AcquireReply> acquire(const AcquireCall& call, const CallContext& context);
  template <class Reply>
  void answer(const Completion<Reply>& done, Result<Reply> reply) const;

  const Options options_;
  Random& random_;
  const Statement acquire_;
  const Statement renew_;
  const Statement release_;
  detail::Alarm closing_;
  Server server_;
  StoreEvents* events_ = nullptr;
  Pool pool_;
  Listener listener_;
};

}  // namespace leasehold::postgres
