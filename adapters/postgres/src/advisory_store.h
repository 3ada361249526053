// The lock store of session advisory locks: mode=advisory.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <thread>

#include "common_store.h"

namespace leasehold::postgres {

// Every held lock and every waiter has a session of its own, because the server ends a session as a
// whole, and lets a session have a lock twice. Calls work on the thread they come from. A thread of
// its own watches the sessions that wait, from the first wait on.
class AdvisoryStore final : public CommonStore {
 public:
  // With the schema in place. `unavailable` or `unsupported`, with the server's own words;
  // `unsupported` behind a connection pooler.
  [[nodiscard]] static Result<std::unique_ptr<Store>> open(Options options, Random& random,
                                                           const CallContext& context);
  ~AdvisoryStore() override { close(); }

 private:
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
    std::string ahead;  // who had the lock when it began to wait, for messages
  };
  using SessionPointer = std::shared_ptr<Session>;
  class Use;

  AdvisoryStore(Options options, Random& random);

  Status suits(const Server& server) const override;
  std::vector<const Statement*> statements() const override {
    return {&acquire_, &wait_, &grant_, &renew_, &release_};
  }
  const StoreId& own(const StoreId&, const StoreId& advisory) const override { return advisory; }

  Result<AcquireReply> do_acquire(const AcquireCall& call, const CallContext& context) override;
  Result<std::vector<RenewReply>> do_renew(const std::vector<RenewCall>& calls,
                                           const CallContext& context) override;
  Result<ReleaseReply> do_release(const ReleaseCall& call, const CallContext& context) override;
  void do_close() override;

  // The session of this request, once no other call uses it; null if it has none.
  Result<SessionPointer> take_session(const RequestId& request, const CallContext& context);
  void put_back(const SessionPointer& session);
  void let_go(const RequestId& request, const SessionPointer& session);

  Result<AcquireReply> acquire_anew(const AcquireCall& call, const CallContext& context);
  Result<AcquireReply> acquire_in(const SessionPointer& session, const AcquireCall& call,
                                  const CallContext& context);
  Result<AcquireReply> acquire_with(const SessionPointer& session, const AcquireCall& call,
                                    const CallContext& context);
  Result<AcquireReply> granted_already(const AcquireCall& call, const CallContext& context);
  Result<AcquireReply> wait_in_line(const SessionPointer& session, const Rows& rows,
                                    waiting::CallWait& wait);
  void give_up_if_ended(const RenewCall& call, const CallContext& context);
  void watch();
  void poke_watcher();

  const Statement acquire_;
  const Statement wait_;
  const Statement grant_;
  const Statement renew_;
  const Statement release_;
  const Statement force_;
  kit::Fd poke_;
  Mutex mutex_;
  ConditionVariable changed_;
  bool closed_ LEASEHOLD_GUARDED_BY(mutex_) = false;
  std::map<RequestId, SessionPointer> by_request_ LEASEHOLD_GUARDED_BY(mutex_);
  std::thread watcher_ LEASEHOLD_GUARDED_BY(mutex_);
};

}  // namespace leasehold::postgres
