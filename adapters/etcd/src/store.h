// The lock store on an etcd cluster.
#pragma once

#include <memory>
#include <thread>

#include "kit/threads/thread_safety.h"
#include "leasehold/registry.h"
#include "leasehold/store.h"
#include "leasehold/url.h"
#include "lock_watches.h"
#include "options.h"
#include "session.h"

namespace leasehold::etcd {

// No call blocks; answers and events come on gRPC's threads. A thread of its own keeps places in
// queues, and ends what has expired.
class EtcdStore final : public Store, private OnceRecords, private WatchListener {
 public:
  // As open_transport() does, and makes the store's lineage if it has none.
  [[nodiscard]] static Result<std::unique_ptr<Store>> open(Options options,
                                                           const CallContext& context);
  ~EtcdStore() override { close(); }

  const StoreTraits& traits() const override { return traits_; }
  void start(StoreEvents& events) override;
  void close() override;
  void acquire(AcquireCall call, CallContext context, Completion<AcquireReply> done) override;
  void renew(std::vector<RenewCall> calls, CallContext context,
             Completion<std::vector<RenewReply>> done) override;
  void release(ReleaseCall call, CallContext context, Completion<ReleaseReply> done) override;
  void inspect(LockName lock, CallContext context, Completion<LockStatus> done) override;
  void list(CallContext context, Completion<std::vector<LockStatus>> done) override;
  void force_release(LockName lock, RequestId seen, CallContext context,
                     Completion<ReleaseReply> done) override;
  void rotate_store_id(CallContext context, Completion<StoreId> done) override;
  void set_permits(LockName lock, std::optional<std::int64_t> permits, CallContext context,
                   Completion<std::monostate> done) override;
  OnceRecords* once_records() override { return this; }
  ChangeHints* change_hints() override { return &lock_watches_; }

 private:
  void recall(LockName lock, std::string key, CallContext context,
              Completion<std::optional<OnceRecord>> done) override;
  void record(LockName lock, RequestId request, std::string key, OnceRecord what,
              CallContext context, Completion<std::monostate> done) override;
  void list_keys(LockName lock, CallContext context,
                 Completion<std::vector<std::string>> done) override;
  void forget(LockName lock, std::string key, CallContext context, Completion<bool> done) override;

  EtcdStore(Options options, std::unique_ptr<Transport> transport);

  void key_changed(const RequestId& request, Watched which) override;
  void watch_lost(const RequestId& request, Watched which) override;
  void watch_began_late(const RequestId& request, Watched which) override;

  void release_as(const RequestId& request, Claim claim, const CallContext& context,
                  Completion<ReleaseReply> done);
  void release_unknown(ReleaseCall call, const CallContext& context, Completion<ReleaseReply> done);

  void keep(ReleaseCall call, CallContext context, Completion<ReleaseReply> done);
  void end_at_once(const RequestId& request);
  void keep_on(LeaseId lease, const ReleaseCall& call, const CallContext& context,
               Completion<ReleaseReply> done);

  void wake() LEASEHOLD_EXCLUDES(mutex_);
  void housekeeping(const std::stop_token& stop);
  void end_expired();
  void refresh_waiters();
  void revoke_unused_leases();

  StoreTraits traits_;
  Session session_;
  LockWatches lock_watches_{session_.keys, *session_.transport, [this] { wake(); }};
  StoreEvents* events_ = nullptr;

  Mutex mutex_;
  ConditionVariable wake_;
  bool idle_ LEASEHOLD_GUARDED_BY(mutex_) = false;
  bool closed_ LEASEHOLD_GUARDED_BY(mutex_) = false;
  std::atomic<bool> waiters_refresh_under_way_ = false;
  std::jthread housekeeper_;
};

// Of every etcd store.
StoreTraits etcd_traits(const std::string& address);

[[nodiscard]] Result<std::unique_ptr<Store>> open_store(const Url& url, const OpenOptions& opening);

}  // namespace leasehold::etcd
