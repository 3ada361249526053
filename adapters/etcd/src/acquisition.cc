#include "acquisition.h"

#include <algorithm>
#include <atomic>

#include "store_base/busy_label.h"

namespace leasehold::etcd {
namespace {

constexpr int kMostRounds = 20;
constexpr Millis kOldWaitersLease{1000};
constexpr Millis kAsksAgainSoonest{500};
constexpr Millis kAsksAgainLatest{5000};

// Runs on gRPC's threads, one step after the other. In the common case that is one transaction:
// it puts the own key if the lock's folder is empty.
class Acquisition final : public std::enable_shared_from_this<Acquisition> {
 public:
  Acquisition(Session& session, AcquireCall call, CallContext context,
              Completion<AcquireReply> done)
      : session_(session),
        call_(std::move(call)),
        context_(std::move(context)),
        done_(std::move(done)),
        began_(BootClock::now()),
        kind_(LeaseKind::locks(call_.ttl)),
        name_(session_.keys.known_as(call_.lock)),
        folder_(session_.keys.folder(call_.lock)),
        own_(folder_ + call_.request.hex()) {}

  void begin() {
    if (++rounds_ > kMostRounds) {
      return failed(error_at(
          session_.address,
          Error(ErrorCode::unavailable, "the leases of etcd end faster than they are used")));
    }
    const auto claim = session_.claims.find(call_.request);
    if (claim && claim->state == Claim::State::over) return end_old_claim(*claim);
    held_already_ = claim && claim->state == Claim::State::held ? claim->lease : 0;
    created_ = claim && claim->state == Claim::State::waiting ? claim->created : 0;
    if (claim && claim->state != Claim::State::held) still_wanted();
    session_.leases.with_lease(kind_, once_within(context_),
                               [self = shared_from_this()](tl::expected<EtcdLease, Failure> lease) {
                                 if (!lease) return self->failed(lease.error());
                                 self->lease_ = *lease;
                                 self->ask();
                               });
  }

 private:
  using Response = tl::expected<wire::TxnResponse, Failure>;

  // Its time has passed, but its key may be there still: this is a new beginning.
  void end_old_claim(const Claim& claim) {
    withdraw(session_, call_.lock, call_.request, claim.created, {}, repeated_within(context_),
             [self = shared_from_this()](tl::expected<bool, Failure> gone) {
               if (!gone) return self->failed(gone.error());
               self->session_.claims.change(self->call_.request, [&](Claim& it) {
                 it.state = Claim::State::unconfirmed;
                 it.created = 0;
               });
               self->begin();
             });
  }

  void still_wanted() {
    session_.claims.change(call_.request, [&](Claim& claim) { claim.expires = given_up_at(); });
  }
  BootTime given_up_at() const {
    return BootClock::now() + std::max(kGivenUpAfter, call_.ttl.length());
  }

  void ask() {
    if (created_ != 0) return claim();
    enter(call_.queue ? young_waiters_lease() : 0);
  }

  // ---- the lease for locks is shared: is it young enough for a new grant?

  bool is_young(const EtcdLease& lease) const { return lease.age(began_) <= lease.ttl / 6; }

  // Sends the transaction, and beside it a keep-alive if the lease needs one.
  void send(wire::TxnRequest request, void (Acquisition::*then)(const wire::TxnResponse&)) {
    const bool refresh = !is_young(lease_) && held_already_ == 0 && !refreshed_;
    parts_ = refresh ? 2 : 1;
    if (refresh) {
      refreshed_ = true;
      session_.leases.refresh(lease_.id, once_within(context_),
                              [self = shared_from_this(), then](tl::expected<bool, Failure> alive) {
                                self->alive_ = std::move(alive);
                                self->part_is_done(then);
                              });
    }
    session_.txn(std::move(request), once_within(context_),
                 [self = shared_from_this(), then](Response response) {
                   self->response_ = std::move(response);
                   self->part_is_done(then);
                 });
  }

  void part_is_done(void (Acquisition::*then)(const wire::TxnResponse&)) {
    if (--parts_ > 0) return;
    if (!response_) return not_answered(response_.error());
    placed_ = placed_ || shows_own_key(*response_);
    const bool lease_has_died = alive_ && !*alive_;
    if (lease_has_died) return start_over();
    (this->*then)(*response_);
  }

  bool shows_own_key(const wire::TxnResponse& response) const {
    const auto is_own = [this](const wire::KeyValue& kv) { return kv.key() == own_; };
    const auto shows = [&](const wire::ResponseOp& it) {
      return std::any_of(it.range().kvs().begin(), it.range().kvs().end(), is_own);
    };
    return response.succeeded() ||
           std::any_of(response.responses().begin(), response.responses().end(), shows);
  }

  void start_over() {
    alive_ = true;
    refreshed_ = false;
    begin();
  }

  void not_answered(const Failure& failure) {
    if (failure.lease_is_gone()) return forget_what_died(lease_.id, failure);
    if ((failure.ambiguous() || failure.out_of_space()) && created_ == 0) {
      remember([&](Claim& claim) {
        if (!failure.ambiguous()) return;
        claim.at_risk.push_back(lease_.id);
        if (waiters_lease_ != 0) claim.at_risk.push_back(waiters_lease_);
      });
    }
    failed(failure);
  }

  // The server does not say which lease is gone, and others' keys are on the one that lives.
  void forget_what_died(LeaseId id, const Failure& refusal) {
    session_.leases.refresh(
        id, once_within(context_),
        [self = shared_from_this(), id, refusal](const tl::expected<bool, Failure>& alive) {
          if (!alive) return self->failed(refusal);
          const bool both_asked = id == self->waiters_lease_ || self->waiters_lease_ == 0;
          if (both_asked) return self->start_over();
          self->forget_what_died(self->waiters_lease_, refusal);
        });
  }

  // Its key is there, or may be: if nobody asks again, it is deleted.
  template <class Change>
  void remember(Change change) {
    session_.claims.update(call_.request, call_.lock, [&](Claim& claim) {
      change(claim);
      if (claim.state != Claim::State::held) claim.expires = given_up_at();
    });
  }

  void failed(const Failure& failure) { failed(session_.error(failure)); }
  void failed(Error error) {
    if (placed_) remember([](Claim&) {});
    if (placed_ && error.code != ErrorCode::outcome_unknown) {
      error.code = ErrorCode::outcome_unknown;
      error.message = "a part of it was done, and then: " + error.message;
    }
    done_(fail(std::move(error)));
  }

  // ---- the first transaction: take the lock if nobody wants it, else a place in the queue

  LeaseId young_waiters_lease() const {
    const auto lease = session_.leases.current(LeaseKind::waiters());
    return lease && lease->age(BootClock::now()) < kOldWaitersLease ? lease->id : 0;
  }

  // `waiters_lease`: 0 for no place in the queue.
  void enter(LeaseId waiters_lease) {
    waiters_lease_ = waiters_lease;
    const std::string withdrawn = session_.keys.withdrawn(call_.request);
    wire::TxnRequest txn;
    *txn.add_compare() = nothing_in(folder_);
    *txn.add_compare() = without_lease(name_);
    *txn.add_compare() = nothing_in(withdrawn);
    *txn.add_success() = put(own_, value(OwnValue::State::held), lease_.id);
    *txn.add_success() = get(session_.keys.lineage());
    // The place is taken before the others are looked at.
    if (waiters_lease != 0) *txn.add_failure() = take_place(waiters_lease, withdrawn);
    *txn.add_failure() = get_without_value(own_);
    *txn.add_failure() = first_in(folder_);
    *txn.add_failure() = get(session_.keys.lineage());
    *txn.add_failure() = get(name_);
    if (waiters_lease != 0) *txn.add_failure() = newest_in(folder_, 2);
    send(std::move(txn), &Acquisition::entered);
  }

  wire::RequestOp take_place(LeaseId waiters_lease, const std::string& withdrawn) const {
    wire::RequestOp op;
    *op.mutable_txn()->add_compare() = created_at(own_, 0);
    *op.mutable_txn()->add_compare() = nothing_in(withdrawn);
    *op.mutable_txn()->add_success() = put(own_, value(OwnValue::State::waits), waiters_lease);
    return op;
  }

  void entered(const wire::TxnResponse& response) {
    if (response.succeeded()) {
      return granted(response.header().revision(), first_kv(response, 1));
    }
    const int base = waiters_lease_ != 0 ? 1 : 0;
    const wire::KeyValue* own = first_kv(response, base);
    const wire::KeyValue* first = first_kv(response, base + 1);
    const wire::KeyValue* at_name = lock_at_name(response, base + 3);
    if (own == nullptr || first == nullptr) return not_in_folder(holder_of(first, at_name));
    created_ = own->create_revision();
    if (first->key() == own_) {
      const bool on_its_lease = own->lease() == lease_.id || own->lease() == held_already_;
      if (!on_its_lease && at_name != nullptr) {
        return queued(own->lease(), name_, response.header().revision(), *at_name);
      }
      if (!on_its_lease) return claim();
      lease_.id = own->lease();
      return granted_again(first_kv(response, base + 2));
    }
    const wire::RangeResponse& newest = response.responses(response.responses_size() - 1).range();
    const bool just_queued = base == 1 && newest.kvs_size() == 2 && newest.kvs(0).key() == own_;
    if (!just_queued) return claim();  // that tells who is before
    queued(own->lease(), newest.kvs(1).key(), response.header().revision(),
           *holder_of(first, at_name));
  }

  void not_in_folder(const wire::KeyValue* holder) {
    const bool withdrawn = holder == nullptr || waiters_lease_ != 0;
    if (withdrawn) return was_withdrawn();
    if (!call_.queue) return done_(Busy{owner_of(*holder)});
    get_waiters_lease();
  }

  void was_withdrawn() {
    done_(fail(error_at(
        session_.address,
        Error(ErrorCode::unavailable, "request " + call_.request.hex() + " was withdrawn"))));
  }

  void get_waiters_lease() {
    session_.leases.with_lease(LeaseKind::waiters(), once_within(context_),
                               [self = shared_from_this()](tl::expected<EtcdLease, Failure> lease) {
                                 if (!lease) return self->failed(lease.error());
                                 if (lease->age(BootClock::now()) < kOldWaitersLease)
                                   return self->enter(lease->id);
                                 self->refresh_waiters_lease(lease->id);
                               });
  }

  void refresh_waiters_lease(LeaseId id) {
    session_.leases.refresh(id, once_within(context_),
                            [self = shared_from_this(), id](tl::expected<bool, Failure> alive) {
                              if (!alive) return self->failed(alive.error());
                              if (*alive) return self->enter(id);
                              self->start_over();
                            });
  }

  // ---- a waiter asks again: is it the first now?

  void claim() {
    wire::TxnRequest txn;
    *txn.add_compare() = created_at(own_, created_);
    *txn.add_compare() = nothing_before(folder_, created_);
    *txn.add_compare() = without_lease(name_);
    *txn.add_compare() = nothing_in(session_.keys.withdrawn(call_.request));
    *txn.add_success() = put(own_, value(OwnValue::State::held), lease_.id);
    *txn.add_success() = get(session_.keys.lineage());
    *txn.add_failure() = get_without_value(own_);
    *txn.add_failure() = first_in(folder_);
    *txn.add_failure() = newest_before(folder_, created_);
    *txn.add_failure() = get(name_);
    send(std::move(txn), &Acquisition::claimed);
  }

  void claimed(const wire::TxnResponse& response) {
    if (response.succeeded()) return granted(created_, first_kv(response, 1));
    const wire::KeyValue* own = first_kv(response, 0);
    const wire::KeyValue* first = first_kv(response, 1);
    const wire::KeyValue* before = first_kv(response, 2);
    const wire::KeyValue* at_name = lock_at_name(response, 3);
    if (before == nullptr) before = at_name;
    const bool still_there = own != nullptr && own->create_revision() == created_;
    if (still_there && before == nullptr) return was_withdrawn();
    if (!still_there || before == nullptr || first == nullptr) {
      session_.claims.change(call_.request, [](Claim& claim) {
        claim.state = Claim::State::unconfirmed;
        claim.created = 0;
      });
      return start_over();
    }
    queued(own->lease(), before->key(), response.header().revision(), *holder_of(first, at_name));
  }

  // ---- answers

  std::string value(OwnValue::State state) const {
    return OwnValue{state, wall_clock_ms(), call_.owner.str()}.str();
  }

  std::string owner_of(const wire::KeyValue& kv) const {
    const auto value = OwnValue::parse(kv.value());
    const bool kept = value && value->state == OwnValue::State::kept;
    return busy_label(etcd::owner_of(kv.key(), value), kept);
  }

  void queued(LeaseId lease, const std::string& predecessor, std::int64_t revision,
              const wire::KeyValue& holder) {
    std::int64_t old_watch = 0;
    session_.claims.update(call_.request, call_.lock, [&](Claim& claim) {
      claim.state = Claim::State::waiting;
      claim.predecessor = predecessor;
      claim.created = created_;
      claim.lease = lease;
      claim.expires = given_up_at();
      old_watch = std::exchange(claim.predecessor_watch, 0);
    });
    session_.watcher.cancel(old_watch);
    const std::int64_t watch =
        session_.watcher.watch(predecessor, revision, call_.request, Watched::predecessor);
    session_.claims.change(call_.request, [&](Claim& claim) { claim.predecessor_watch = watch; });
    if (!call_.queue) return done_(Busy{owner_of(holder)});
    // Asking also keeps the lease for locks alive, so that it is there at the grant.
    const Millis again = std::clamp<Millis>(lease_.ttl / 2, kAsksAgainSoonest, kAsksAgainLatest);
    done_(Queued{again, owner_of(holder)});
  }

  // The same grant as before; whoever asks twice does not know when it began, and renews it.
  void granted_again(const wire::KeyValue* lineage) {
    hold(held_already_ != 0);
    answer(lease_.ttl, /*fresh=*/false, lineage_in(lineage));
  }

  void granted(std::int64_t created, const wire::KeyValue* lineage) {
    created_ = created;
    hold(/*keeps_expiry=*/false);
    const EtcdLease lease = session_.leases.find(lease_.id).value_or(lease_);
    const Millis age = std::max(Millis(0), lease.age(began_));
    if (age <= lease.ttl / 6) {
      return answer(lease.ttl - age, /*fresh=*/true, lineage_in(lineage));
    }
    done_(fail(error_at(session_.address,
                        Error(ErrorCode::outcome_unknown,
                              "the lock was granted on an old lease, and whether that was kept "
                              "alive is not known",
                              alive_ ? "" : alive_.error().words))));
  }

  void hold(bool keeps_expiry) {
    std::int64_t watch = 0;
    session_.claims.update(call_.request, call_.lock, [&](Claim& claim) {
      claim.state = Claim::State::held;
      claim.created = created_;
      claim.owner = call_.owner.str();
      claim.lease = lease_.id;
      if (!keeps_expiry) claim.expires = began_ + lease_.ttl;
      watch = std::exchange(claim.predecessor_watch, 0);
    });
    session_.watcher.cancel(watch);
  }

  void answer(Millis ttl, bool fresh, std::optional<StoreId> lineage) {
    const TokenNumber token = TokenNumber::of(created_).value();
    if (lineage) return done_(Granted{token, *lineage, ttl, fresh});
    // Somebody has deleted the lineage: everything starts over.
    ensure_lineage(
        session_, once_within(context_),
        [self = shared_from_this(), token, ttl, fresh](tl::expected<StoreId, Failure> made) {
          if (!made) return self->failed(made.error());
          self->done_(Granted{token, *made, ttl, fresh});
        });
  }

  Session& session_;
  const AcquireCall call_;
  const CallContext context_;
  const Completion<AcquireReply> done_;
  const BootTime began_;
  const LeaseKind kind_;
  const std::string name_;
  const std::string folder_;
  const std::string own_;

  int rounds_ = 0;
  EtcdLease lease_;
  LeaseId waiters_lease_ = 0;
  LeaseId held_already_ = 0;
  std::int64_t created_ = 0;
  bool refreshed_ = false;
  bool placed_ = false;  // the server has shown the own key

  std::atomic<int> parts_ = 0;
  tl::expected<bool, Failure> alive_ = true;
  Response response_ = tl::unexpected(Failure{});
};

}  // namespace

void acquire(Session& session, AcquireCall call, CallContext context,
             Completion<AcquireReply> done) {
  std::make_shared<Acquisition>(session, std::move(call), std::move(context), std::move(done))
      ->begin();
}

}  // namespace leasehold::etcd
