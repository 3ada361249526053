// The lock store of session advisory locks: mode=advisory.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <thread>

#include "connection.h"
#include "leasehold/detail/connection_pool.h"
#include "leasehold/store.h"
#include "options.h"
#include "server.h"

namespace leasehold::postgres {

// Every held lock and every waiter has a session of its own, because the server ends a session as a
// whole, and lets a session have a lock twice. Calls work on the thread they come from. A thread of
// its own watches the sessions that wait, from the first wait on.
class SessionStore final : public Store {
 public:
  // With the schema in place. `unavailable` or `unsupported`, with the server's own words;
  // `unsupported` behind a connection pooler.
  [[nodiscard]] static Result<std::unique_ptr<Store>> open(Options options, Random& random);
  ~SessionStore() override { close(); }

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
  enum class Phase {
    asking,    // nothing is known yet
    waiting,   // the server has its pg_advisory_lock, and has not answered it
    has_lock,  // the advisory lock, but no lease yet
    held,
  };
  // Used by one call at a time; `busy` says so. It has its connection as long as it is in the map.
  struct Session {
    explicit Session(Pool::Loan loan) : connection(std::move(loan)) {}
    Pool::Loan connection;
    Phase phase = Phase::asking;
    bool busy = true;
    bool told = false;  // the engine knows that its turn has come
  };
  using SessionPointer = std::shared_ptr<Session>;
  class Use;

  SessionStore(Options options, Random& random);
  Status look_and_prepare();
  Result<std::unique_ptr<Connection>> connect(const CallContext& context);
  Result<Pool::Loan> healthy_connection(const CallContext& context);
  Result<Rows> ask(const Statement& statement, Parameters parameters, const CallContext& context);

  // The session of this request, once no other call uses it; null if it has none.
  Result<SessionPointer> take_session(const RequestId& request, const CallContext& context);
  void put_back(const SessionPointer& session);
  void forget(const RequestId& request, const SessionPointer& session);

  Result<AcquireReply> acquire(const AcquireCall& call, const CallContext& context);
  Result<AcquireReply> acquire_anew(const AcquireCall& call, const CallContext& context);
  Result<AcquireReply> acquire_in(const SessionPointer& session, const AcquireCall& call,
                                  const CallContext& context);
  Result<AcquireReply> acquire_with(const SessionPointer& session, const AcquireCall& call,
                                    const CallContext& context);
  Result<AcquireReply> granted_already(const AcquireCall& call, const CallContext& context);
  Result<AcquireReply> wait_in_line(const SessionPointer& session, const Rows& rows,
                                    detail::CallWait& wait);
  Result<std::vector<RenewReply>> renew(const std::vector<RenewCall>& calls,
                                        const CallContext& context);
  void give_up_if_ended(const RenewCall& call, const CallContext& context);
  Result<ReleaseReply> release(const ReleaseCall& call, const CallContext& context);
  void watch();
  void poke_watcher();
  template <class Reply>
  void answer(const Completion<Reply>& done, Result<Reply> reply) const;

  const Options options_;
  Random& random_;
  const Statement acquire_;
  const Statement grant_;
  const Statement renew_;
  const Statement release_;
  const Statement force_;
  detail::Alarm closing_;
  Server server_;
  StoreEvents* events_ = nullptr;
  detail::Fd poke_;
  Pool pool_;
  Mutex mutex_;
  ConditionVariable changed_;
  bool closed_ LEASEHOLD_GUARDED_BY(mutex_) = false;
  std::map<RequestId, SessionPointer> by_request_ LEASEHOLD_GUARDED_BY(mutex_);
  std::thread watcher_ LEASEHOLD_GUARDED_BY(mutex_);
};

}  // namespace leasehold::postgres
