#include "attempt.h"

#include <algorithm>

#include "acquisition.h"
#include "store_base/busy_label.h"
#include "store_base/mode_conflict.h"

namespace leasehold::etcd {
namespace {

constexpr int kMostRounds = 20;
constexpr Millis kOldWaitersLease{1000};
constexpr Millis kAsksAgainSoonest{500};
constexpr Millis kAsksAgainLatest{5000};

}  // namespace

Attempt::Attempt(Session& session, AcquireCall call, CallContext context,
                 Completion<AcquireReply> done)
    : session_(session),
      call_(std::move(call)),
      name_(session_.keys.known_as(call_.lock)),
      folder_(session_.keys.folder(call_.lock)),
      own_(session_.keys.own(call_.lock, call_.request, call_.mode)),
      withdrawn_(session_.keys.withdrawn(call_.request)),
      context_(std::move(context)),
      done_(std::move(done)),
      began_(BootClock::now()),
      kind_(LeaseKind::locks(call_.ttl)) {}

void Attempt::begin() {
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
                               if (self->created_ != 0) return self->claim();
                               self->enter(self->call_.queue ? self->young_waiters_lease() : 0);
                             });
}

// Its time has passed, but its key may be there still: this is a new beginning.
void Attempt::end_old_claim(const Claim& claim) {
  Claim old = claim;
  old.at_risk.clear();
  withdraw(session_, call_.request, std::move(old), repeated_within(context_),
           [self = shared_from_this()](tl::expected<bool, Failure> gone) {
             if (!gone) return self->failed(gone.error());
             self->session_.claims.change(self->call_.request, [&](Claim& it) {
               it.state = Claim::State::unconfirmed;
               it.created = 0;
             });
             self->begin();
           });
}

void Attempt::still_wanted() {
  session_.claims.change(call_.request, [&](Claim& claim) { claim.expires = given_up_at(); });
}

BootTime Attempt::given_up_at() const {
  return BootClock::now() + std::max(kGivenUpAfter, call_.ttl.length());
}

// ---- sending -------------------------------------------------------------------------------

// The lease for locks is shared: it may be too old for a new grant.
void Attempt::send(wire::TxnRequest request, Answered then) {
  const bool refresh = !is_young(lease_) && held_already_ == 0 && !refreshed_;
  puts_own_ = request.success_size() > 0 && request.success(0).put().key() == own_;
  parts_ = refresh ? 2 : 1;
  if (refresh) {
    refreshed_ = true;
    session_.leases.refresh(lease_.id, once_within(context_),
                            [self = shared_from_this(), then](tl::expected<bool, Failure> alive) {
                              self->alive_ = std::move(alive);
                              self->part_is_done(then);
                            });
  }
  session_.ride->go(call_.lock, call_.mode, std::move(request), once_within(context_),
                    [self = shared_from_this(),
                     then = std::move(then)](tl::expected<wire::TxnResponse, Failure> response) {
                      self->response_ = std::move(response);
                      self->part_is_done(then);
                    });
}

void Attempt::part_is_done(const Answered& then) {
  if (--parts_ > 0) return;
  if (!response_) return not_answered(response_.error());
  placed_ = placed_ || shows_own_key(*response_);
  const bool lease_has_died = alive_ && !*alive_;
  if (lease_has_died) return start_over();
  const wire::TxnResponse response = *std::exchange(response_, tl::unexpected(Failure{}));
  then(response);
}

bool Attempt::shows_own_key(const wire::TxnResponse& response) const {
  const auto is_own = [this](const wire::KeyValue& kv) { return kv.key() == own_; };
  const auto shows = [&](const wire::ResponseOp& it) {
    return std::any_of(it.range().kvs().begin(), it.range().kvs().end(), is_own);
  };
  return (response.succeeded() && puts_own_) ||
         std::any_of(response.responses().begin(), response.responses().end(), shows);
}

void Attempt::start_over() {
  alive_ = true;
  refreshed_ = false;
  begin();
}

void Attempt::start_anew() {
  session_.claims.change(call_.request, [](Claim& claim) {
    claim.state = Claim::State::unconfirmed;
    claim.created = 0;
  });
  start_over();
}

void Attempt::not_answered(const Failure& failure) {
  if (failure.lease_is_gone()) return forget_what_died(lease_.id, failure);
  if ((failure.ambiguous() || failure.out_of_space()) && (created_ == 0 || slot_)) {
    remember([&](Claim& claim) {
      if (!failure.ambiguous() || created_ != 0) return;
      claim.at_risk.push_back(lease_.id);
      if (waiters_lease_ != 0) claim.at_risk.push_back(waiters_lease_);
    });
  }
  failed(failure);
}

// The server does not say which lease is gone, and others' keys are on the one that lives.
void Attempt::forget_what_died(LeaseId id, const Failure& refusal) {
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
void Attempt::remember(Change change) {
  session_.claims.update(call_.request, call_.lock, [&](Claim& claim) {
    claim.mode = call_.mode;
    if (slot_ && claim.state != Claim::State::held) claim.slot = slot_;
    change(claim);
    if (claim.state != Claim::State::held) claim.expires = given_up_at();
  });
}

void Attempt::failed(const Failure& failure) {
  failed(session_.error(failure));
}

void Attempt::failed(Error error) {
  if (placed_) remember([](Claim&) {});
  if (placed_ && error.code != ErrorCode::outcome_unknown) {
    error.code = ErrorCode::outcome_unknown;
    error.message = "a part of it was done, and then: " + error.message;
  }
  done_(fail(std::move(error)));
}

LeaseId Attempt::young_waiters_lease() const {
  const auto lease = session_.leases.current(LeaseKind::waiters());
  return lease && lease->age(BootClock::now()) < kOldWaitersLease ? lease->id : 0;
}

void Attempt::get_waiters_lease() {
  session_.leases.with_lease(LeaseKind::waiters(), once_within(context_),
                             [self = shared_from_this()](tl::expected<EtcdLease, Failure> lease) {
                               if (!lease) return self->failed(lease.error());
                               if (lease->age(BootClock::now()) < kOldWaitersLease)
                                 return self->enter(lease->id);
                               self->refresh_waiters_lease(lease->id);
                             });
}

void Attempt::refresh_waiters_lease(LeaseId id) {
  session_.leases.refresh(id, once_within(context_),
                          [self = shared_from_this(), id](tl::expected<bool, Failure> alive) {
                            if (!alive) return self->failed(alive.error());
                            if (*alive) return self->enter(id);
                            self->start_over();
                          });
}

wire::RequestOp Attempt::put_own(OwnValue::State state, LeaseId lease) const {
  const OwnValue value{state, wall_clock_ms(), call_.owner.str(), call_.note.str()};
  return put(own_, value.str(), lease);
}

// ---- answers -------------------------------------------------------------------------------

void Attempt::was_withdrawn() {
  done_(
      fail(error_at(session_.address, Error(ErrorCode::unavailable,
                                            "request " + call_.request.hex() + " was withdrawn"))));
}

void Attempt::conflicts(Mode used, bool set) {
  done_(fail(mode_conflict(call_.lock, call_.mode, used, set)));
}

std::string Attempt::label_of(const wire::KeyValue& kv) const {
  const auto value = OwnValue::parse(kv.value());
  const bool kept = value && value->state == OwnValue::State::kept;
  return busy_label(owner_of(kv.key(), value), kept);
}

void Attempt::busy(const wire::KeyValue& holder) {
  done_(Busy{label_of(holder)});
}

// A watch that goes on has missed nothing, however busy the server is.
void Attempt::queued(LeaseId lease, Ahead ahead, std::int64_t revision,
                     const wire::KeyValue& holder) {
  std::vector<std::int64_t> over;
  bool watches = false;
  session_.claims.update(call_.request, call_.lock, [&](Claim& claim) {
    claim.state = Claim::State::waiting;
    claim.mode = call_.mode;
    claim.created = created_;
    claim.lease = lease;
    claim.expires = given_up_at();
    watches = claim.predecessor == ahead.keys && claim.predecessor_watch != 0 &&
              (claim.permits_watch != 0) == ahead.permits;
    if (!watches) over = take_watches(claim);
    claim.predecessor = ahead.keys;
  });
  session_.cancel(over);
  if (!watches) {
    const std::int64_t predecessor = watch(ahead.keys, revision, Watched::predecessor);
    const std::string set = session_.keys.set_permits(call_.lock);
    const std::int64_t permits =
        ahead.permits ? watch({set, end_of_prefix(set), /*puts=*/true}, revision, Watched::permits)
                      : 0;
    session_.claims.change(call_.request, [&](Claim& claim) {
      claim.predecessor_watch = predecessor;
      claim.permits_watch = permits;
    });
  }
  if (!call_.queue) return busy(holder);
  // Asking also keeps the lease for locks alive, so that it is there at the grant.
  const Millis again = std::clamp<Millis>(lease_.ttl / 2, kAsksAgainSoonest, kAsksAgainLatest);
  done_(Queued{again, label_of(holder)});
}

std::int64_t Attempt::watch(const WatchedKeys& keys, std::int64_t revision, Watched which) {
  return session_.watcher.watch(keys, revision, call_.request, which);
}

void Attempt::granted_again(const wire::KeyValue& own, const wire::KeyValue* lineage) {
  created_ = own.create_revision();
  lease_.id = own.lease();
  hold(held_already_ != 0);
  answer(lease_.ttl, /*fresh=*/false, lineage_in(lineage));
}

void Attempt::granted(std::int64_t created, const wire::KeyValue* lineage) {
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

void Attempt::hold(bool keeps_expiry) {
  std::vector<std::int64_t> over;
  session_.claims.update(call_.request, call_.lock, [&](Claim& claim) {
    claim.state = Claim::State::held;
    claim.mode = call_.mode;
    claim.created = created_;
    claim.slot = slot_;
    claim.slot_created = slot_created_;
    claim.owner = call_.owner.str();
    claim.note = call_.note.str();
    claim.lease = lease_.id;
    if (!keeps_expiry) claim.expires = began_ + lease_.ttl;
    over = {std::exchange(claim.predecessor_watch, 0), std::exchange(claim.permits_watch, 0)};
  });
  session_.cancel(over);
}

void Attempt::answer(Millis ttl, bool fresh, std::optional<StoreId> lineage) {
  if (lineage) return done_(grant(ttl, fresh, *lineage));
  // Somebody has deleted the lineage: everything starts over.
  ensure_lineage(session_, once_within(context_),
                 [self = shared_from_this(), ttl, fresh](tl::expected<StoreId, Failure> made) {
                   if (!made) return self->failed(made.error());
                   self->done_(self->grant(ttl, fresh, *made));
                 });
}

// Permits come into the order of their grants by their slots' keys.
Granted Attempt::grant(Millis ttl, bool fresh, StoreId lineage) const {
  const std::int64_t number = slot_ ? slot_created_ : created_;
  return {TokenNumber::of(number).value(), lineage, ttl, fresh, slot_};
}

}  // namespace leasehold::etcd
