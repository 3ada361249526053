// What every call of Store::acquire does, whatever its mode: its leases, what must be remembered of
// it, and its answers.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "session.h"

namespace leasehold::etcd {

// Runs on gRPC's threads, one step after the other.
class Attempt : public std::enable_shared_from_this<Attempt> {
 public:
  virtual ~Attempt() = default;
  void begin();

 protected:
  using Answered = std::function<void(const wire::TxnResponse&)>;

  Attempt(Session& session, AcquireCall call, CallContext context, Completion<AcquireReply> done);

  // Its first transaction; `waiters_lease` is for a place in the queue, 0 for none.
  virtual void enter(LeaseId waiters_lease) = 0;
  // It has a place: is it its turn now?
  virtual void claim() = 0;

  // Sends the transaction, and beside it a keep-alive if the lease for locks needs one.
  void send(wire::TxnRequest request, Answered then);
  void start_over();
  // Its key is not there any more.
  void start_anew();
  void failed(const Failure& failure);
  void failed(Error error);
  // Enters with a lease for a place in the queue.
  void get_waiters_lease();
  bool is_on_its_lease(const wire::KeyValue& own) const {
    return own.lease() == lease_.id || own.lease() == held_already_;
  }

  wire::RequestOp put_own(OwnValue::State state, LeaseId lease) const;

  // ---- answers

  struct Ahead {
    WatchedKeys keys;
    bool permits = false;  // watch their number, too
  };
  void queued(LeaseId lease, Ahead ahead, std::int64_t revision, const wire::KeyValue& holder);
  void busy(const wire::KeyValue& holder);
  void granted(std::int64_t created, const wire::KeyValue* lineage);
  // The same grant as before, on the lease of its key; whoever asks twice does not know when it
  // began, and renews it.
  void granted_again(const wire::KeyValue& own, const wire::KeyValue* lineage);
  void was_withdrawn();
  void conflicts(Mode used, bool set);

  Session& session_;
  const AcquireCall call_;
  const std::string name_;
  const std::string folder_;
  const std::string own_;
  const std::string withdrawn_;

  EtcdLease lease_;
  LeaseId waiters_lease_ = 0;
  std::int64_t created_ = 0;
  std::optional<Slot> slot_;  // of a permit: what it tries to take, or has
  std::int64_t slot_created_ = 0;

 private:
  void end_old_claim(const Claim& claim);
  void still_wanted();
  BootTime given_up_at() const;
  LeaseId young_waiters_lease() const;
  void refresh_waiters_lease(LeaseId id);

  bool is_young(const EtcdLease& lease) const { return lease.age(began_) <= lease.ttl / 6; }
  void part_is_done(const Answered& then);
  bool shows_own_key(const wire::TxnResponse& response) const;
  void not_answered(const Failure& failure);
  void forget_what_died(LeaseId id, const Failure& refusal);
  template <class Change>
  void remember(Change change);

  std::string label_of(const wire::KeyValue& kv) const;
  std::int64_t watch(const WatchedKeys& keys, std::int64_t revision, Watched which);
  void hold(bool keeps_expiry);
  void answer(Millis ttl, bool fresh, std::optional<StoreId> lineage);
  Granted grant(Millis ttl, bool fresh, StoreId lineage) const;

  const CallContext context_;
  const Completion<AcquireReply> done_;
  const BootTime began_;
  const LeaseKind kind_;

  int rounds_ = 0;
  LeaseId held_already_ = 0;
  bool refreshed_ = false;
  bool placed_ = false;  // the server has shown the own key

  std::atomic<int> parts_ = 0;
  bool puts_own_ = false;
  tl::expected<bool, Failure> alive_ = true;
  tl::expected<wire::TxnResponse, Failure> response_ = tl::unexpected(Failure{});
};

}  // namespace leasehold::etcd
