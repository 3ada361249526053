#include "store.h"

#include <algorithm>
#include <future>

#include "acquisition.h"
#include "answer.h"
#include "kit/text/visible_text.h"
#include "kit/try.h"
#include "opening.h"
#include "renewal.h"
#include "status.h"

namespace leasehold::etcd {
namespace {

using namespace std::chrono_literals;

constexpr auto kTick = 250ms;
constexpr auto kIdleAfter = 10s;
constexpr auto kRevokeTimeout = 300ms;
constexpr auto kTidyTimeout = 2s;
constexpr auto kLookTimeout = 2s;

}  // namespace

StoreTraits etcd_traits(const std::string& address) {
  return {.address = address,
          .guarantee = Guarantee::correctness,
          .why = "a token is the revision at which a majority of the cluster stored the lock's key",
          .instead = "",
          .queues = true,
          .keeps_after_release = true,
          .one_counter = true,
          .modes = true};
}

// ---- opening and closing -------------------------------------------------------------------

EtcdStore::EtcdStore(Options options, std::unique_ptr<Transport> transport)
    : traits_(etcd_traits(options.address)),
      session_(std::move(options), std::move(transport), *this) {}

Result<std::unique_ptr<Store>> EtcdStore::open(Options options, const CallContext& context) {
  auto opened = TRY(open_transport(options, context));
  std::unique_ptr<EtcdStore> store(new EtcdStore(std::move(options), std::move(opened.transport)));
  if (!opened.fault.empty()) store->traits_.why += " (but " + opened.fault + ")";
  const Limits limits = repeated_within(context);
  TRY(answer_of<Result<std::monostate>>(
      [&](auto done) { check_format(store->session_, limits, std::move(done)); }));
  const auto made = answer_of<tl::expected<StoreId, Failure>>(
      [&](auto done) { ensure_lineage(store->session_, limits, std::move(done)); });
  if (!made) return fail(not_opened(store->session_.address, made.error()));
  return store;
}

void EtcdStore::start(StoreEvents& events) {
  events_ = &events;
  lock_watches_.tell(events);
  housekeeper_ = std::jthread([this](const std::stop_token& stop) { housekeeping(stop); });
}

void EtcdStore::close() {
  {
    MutexLock lock(mutex_);
    if (std::exchange(closed_, true)) return;
  }
  housekeeper_.request_stop();
  wake_.notify_all();
  if (housekeeper_.joinable()) housekeeper_.join();
  session_.watcher.close();
  lock_watches_.close();
  revoke_unused_leases();
  session_.ride->close();  // it still sends by the transport
  session_.transport->close();
}

// The others end by themselves when their time has come.
void EtcdStore::revoke_unused_leases() {
  std::vector<std::future<void>> revoked;
  for (const EtcdLease& lease : session_.leases.all()) {
    if (session_.claims.any_held_on(lease.id)) continue;
    auto told = std::make_shared<std::promise<void>>();
    revoked.push_back(told->get_future());
    wire::LeaseRevokeRequest request;
    request.set_id(lease.id);
    session_.transport->call<wire::LeaseRevokeRequest, wire::LeaseRevokeResponse>(
        "/etcdserverpb.Lease/LeaseRevoke", std::move(request),
        {.deadline = BootClock::now() + kRevokeTimeout, .stop = {}, .repeat = false},
        [told](const auto&) { told->set_value(); });
  }
  for (auto& it : revoked) it.wait();
}

// ---- housekeeping --------------------------------------------------------------------------

void EtcdStore::housekeeping(const std::stop_token& stop) {
  BootTime last_used = BootClock::now();
  while (!stop.stop_requested()) {
    end_expired();
    refresh_waiters();
    session_.leases.end_waits(BootClock::now());
    session_.watcher.move_to(session_.transport->current());
    lock_watches_.keep(session_.transport->current());
    session_.transport->tidy();
    const bool is_used =
        !session_.claims.empty() || !lock_watches_.empty() || session_.leases.any_waits();
    if (is_used) last_used = BootClock::now();
    const bool rest = BootClock::now() - last_used > kIdleAfter;
    MutexLock lock(mutex_);
    idle_ = rest;
    const auto woken = [this]() LEASEHOLD_REQUIRES(mutex_) { return closed_; };
    const auto needed = [this]() LEASEHOLD_REQUIRES(mutex_) { return closed_ || !idle_; };
    if (rest) {
      wake_.wait(mutex_, needed);
    } else {
      wake_.wait_for(mutex_, kTick, woken);
    }
  }
}

void EtcdStore::end_expired() {
  for (auto& [request, claim] : session_.claims.expire(BootClock::now(), kTidyTimeout)) {
    session_.cancel(take_watches(claim));
    withdraw(session_, request, std::move(claim),
             {.deadline = BootClock::now() + kTidyTimeout, .stop = {}, .repeat = false},
             [this, it = request](const tl::expected<bool, Failure>& gone) {
               if (!gone) return;  // it expires again, and again
               const auto left = session_.claims.find(it);
               if (left && left->state == Claim::State::over) session_.claims.erase(it);
             });
  }
}

void EtcdStore::refresh_waiters() {
  if (!session_.claims.any_waiting()) return;
  const auto lease = session_.leases.current(LeaseKind::waiters());
  if (!lease || lease->age(BootClock::now()) < kWaitersRefresh) return;
  if (waiters_refresh_under_way_.exchange(true)) return;
  session_.leases.refresh(lease->id,
                          {.deadline = BootClock::now() + lease->ttl, .stop = {}, .repeat = true},
                          [this, id = lease->id](const tl::expected<bool, Failure>& alive) {
                            waiters_refresh_under_way_ = false;
                            if (!alive || *alive) return;
                            for (const RequestId& request : session_.claims.waiting_on(id))
                              events_->nudged(request);
                          });
}

namespace {

std::int64_t& watch_in(Claim& claim, Watched which) {
  if (which == Watched::own) return claim.own_watch;
  return which == Watched::permits ? claim.permits_watch : claim.predecessor_watch;
}

}  // namespace

void EtcdStore::key_changed(const RequestId& request, Watched which) {
  if (which != Watched::own) {
    session_.claims.change(request, [&](Claim& claim) { watch_in(claim, which) = 0; });
    return events_->nudged(request);
  }
  bool was_held = false;
  session_.claims.change(request, [&](Claim& claim) {
    claim.own_watch = 0;
    was_held = claim.state == Claim::State::held;
    if (was_held) claim.state = Claim::State::over;
  });
  if (was_held) events_->ended(request);
}

void EtcdStore::watch_lost(const RequestId& request, Watched which) {
  session_.claims.change(request, [&](Claim& claim) { watch_in(claim, which) = 0; });
  if (which != Watched::own) events_->nudged(request);
}

void EtcdStore::watch_began_late(const RequestId& request, Watched which) {
  const auto claim = session_.claims.find(request);
  if (!claim || claim->state != Claim::State::waiting) return;
  const WatchedKeys& keys = claim->predecessor;
  const bool waits_for_a_deletion = keys.range_end.empty() && !keys.puts;
  if (which == Watched::permits || !waits_for_a_deletion) return events_->nudged(request);
  wire::TxnRequest txn;
  *txn.add_success() = get_without_value(keys.key);
  session_.txn(
      std::move(txn), {.deadline = BootClock::now() + kLookTimeout, .stop = {}, .repeat = false},
      [this, request, created = claim->created, name = session_.keys.known_as(claim->lock)](
          const tl::expected<wire::TxnResponse, Failure>& response) {
        const wire::KeyValue* before = response ? first_kv(*response, 0) : nullptr;
        // A key at the lock's name is before all who wait, whenever it came.
        const bool still_before =
            before != nullptr && (before->create_revision() < created || before->key() == name);
        if (!still_before) events_->nudged(request);
      });
}

// ---- leases --------------------------------------------------------------------------------

void EtcdStore::wake() {
  MutexLock lock(mutex_);
  if (std::exchange(idle_, false)) wake_.notify_all();
}

void EtcdStore::acquire(AcquireCall call, CallContext context, Completion<AcquireReply> done) {
  wake();
  etcd::acquire(session_, std::move(call), std::move(context), std::move(done));
}

void EtcdStore::renew(std::vector<RenewCall> calls, CallContext context,
                      Completion<std::vector<RenewReply>> done) {
  const bool closed = [this] {
    MutexLock lock(mutex_);
    return closed_;
  }();
  // What it does not hold is gone without a word to the server.
  if (closed) return done(fail(session_.error(Failure{.kind = Failure::Kind::closed})));
  etcd::renew(session_, std::move(calls), std::move(context), std::move(done));
}

void EtcdStore::release(ReleaseCall call, CallContext context, Completion<ReleaseReply> done) {
  if (call.keep_for > Millis(0)) return keep(std::move(call), std::move(context), std::move(done));
  const auto claim = session_.claims.find(call.request);
  if (!claim) return release_unknown(std::move(call), context, std::move(done));
  std::vector<std::int64_t> watches;
  session_.claims.change(call.request, [&](Claim& it) {
    it.state = Claim::State::over;
    watches = take_watches(it);
  });
  session_.cancel(watches);
  Claim old = *claim;
  old.created = 0;
  release_as(call.request, std::move(old), context, std::move(done));
}

void EtcdStore::release_as(const RequestId& request, Claim claim, const CallContext& context,
                           Completion<ReleaseReply> done) {
  withdraw(session_, request, std::move(claim), once_within(context),
           [this, request, done = std::move(done)](tl::expected<bool, Failure> was_there) {
             if (!was_there) return done(fail(session_.error(was_there.error())));
             session_.claims.erase(request);
             done(*was_there ? ReleaseReply::released : ReleaseReply::not_held);
           });
}

// Of a client that does not exist any more, perhaps: only the key tells in which mode it was.
void EtcdStore::release_unknown(ReleaseCall call, const CallContext& context,
                                Completion<ReleaseReply> done) {
  find_request(session_, call.lock, call.request, context,
               [this, request = call.request, context,
                done = std::move(done)](Result<std::optional<Claim>> found) {
                 if (!found) return done(fail(std::move(found.error())));
                 if (!*found) return done(ReleaseReply::not_held);
                 release_as(request, std::move(**found), context, done);
               });
}

// A kept lock moves to a lease of its own that nobody keeps alive. The mark beside it sees to it
// that nothing late moves or deletes it, nor this client, which may not know that it is kept.
void EtcdStore::keep(ReleaseCall call, CallContext context, Completion<ReleaseReply> done) {
  wire::LeaseGrantRequest request;
  request.set_ttl(std::chrono::ceil<std::chrono::seconds>(call.keep_for).count());
  Limits limits = repeated_within(context);
  session_.transport->call<wire::LeaseGrantRequest, wire::LeaseGrantResponse>(
      "/etcdserverpb.Lease/LeaseGrant", std::move(request), std::move(limits),
      [this, call = std::move(call), context = std::move(context),
       done = std::move(done)](tl::expected<wire::LeaseGrantResponse, Failure> lease) mutable {
        if (lease) return keep_on(lease->id(), call, context, std::move(done));
        if (lease.error().ambiguous()) lease.error().kind = Failure::Kind::not_sent;
        done(fail(session_.error(lease.error())));
      });
}

void EtcdStore::keep_on(LeaseId lease, const ReleaseCall& call, const CallContext& context,
                        Completion<ReleaseReply> done) {
  const auto claim = session_.claims.find(call.request);
  const bool held = claim && claim->state == Claim::State::held;
  if (!held) return done(ReleaseReply::not_held);
  const std::string key = session_.keys.own(call.lock, call.request, claim->mode);
  const OwnValue kept{OwnValue::State::kept, wall_clock_ms(), claim->owner, claim->note};
  wire::TxnRequest txn;
  *txn.add_compare() = created_at(key, claim->created);
  *txn.add_success() = put(key, kept.str(), lease);
  *txn.add_success() = put(session_.keys.withdrawn(call.request, lease), "", lease);
  if (claim->slot) {
    const std::string slot = session_.keys.slot(call.lock, *claim->slot);
    *txn.add_compare() = created_at(slot, claim->slot_created);
    *txn.add_success() = put_on(slot, lease);
  }
  session_.txn(std::move(txn), once_within(context),
               [this, request = call.request, watch = claim->own_watch,
                done = std::move(done)](tl::expected<wire::TxnResponse, Failure> response) {
                 if (!response) return done(fail(session_.error(response.error())));
                 session_.watcher.cancel(watch);
                 end_at_once(request);
                 done(response->succeeded() ? ReleaseReply::released : ReleaseReply::not_held);
               });
}

// If an attempt of it may still be on its way, that is withdrawn first: it could take the lock when
// nobody knows of it any more.
void EtcdStore::end_at_once(const RequestId& request) {
  const auto claim = session_.claims.find(request);
  if (!claim || claim->at_risk.empty()) return session_.claims.erase(request);
  session_.claims.change(request, [](Claim& it) {
    it.state = Claim::State::over;
    it.own_watch = 0;
    it.expires = BootClock::now();
  });
}

// ---- for people ----------------------------------------------------------------------------

void EtcdStore::inspect(LockName lock, CallContext context, Completion<LockStatus> done) {
  etcd::inspect(session_, std::move(lock), std::move(context), std::move(done));
}

void EtcdStore::list(CallContext context, Completion<std::vector<LockStatus>> done) {
  etcd::list(session_, std::move(context), std::move(done));
}

void EtcdStore::force_release(LockName lock, RequestId seen, CallContext context,
                              Completion<ReleaseReply> done) {
  etcd::force_release(session_, std::move(lock), seen, std::move(context), std::move(done));
}

void EtcdStore::set_permits(LockName lock, std::optional<std::int64_t> permits, CallContext context,
                            Completion<std::monostate> done) {
  etcd::set_permits(session_, std::move(lock), permits, std::move(context), std::move(done));
}

void EtcdStore::rotate_store_id(CallContext context, Completion<StoreId> done) {
  const StoreId fresh = StoreId::random(system_random());
  wire::TxnRequest txn;
  *txn.add_success() = put(session_.keys.lineage(), fresh.hex(), 0);
  session_.txn(std::move(txn), once_within(context),
               [this, fresh,
                done = std::move(done)](const tl::expected<wire::TxnResponse, Failure>& response) {
                 if (!response) return done(fail(session_.error(response.error())));
                 done(fresh);
               });
}

// ---- what was done once --------------------------------------------------------------------

void EtcdStore::recall(LockName lock, std::string key, CallContext context,
                       Completion<std::optional<OnceRecord>> done) {
  wire::TxnRequest txn;
  *txn.add_success() = get(session_.keys.once(lock, key));
  session_.txn(
      std::move(txn), repeated_within(context),
      [this, done = std::move(done)](const tl::expected<wire::TxnResponse, Failure>& response) {
        if (!response) return done(fail(session_.error(response.error())));
        const wire::KeyValue* kv = first_kv(*response, 0);
        if (kv == nullptr) return done(std::optional<OnceRecord>());
        auto record = decode_record(kv->value());
        if (record) return done(std::move(record));
        done(fail(error_at(session_.address, Error(ErrorCode::unavailable,
                                                   "the record is not as Leasehold writes it"))));
      });
}

void EtcdStore::record(LockName lock, RequestId request, std::string key, OnceRecord what,
                       CallContext context, Completion<std::monostate> done) {
  const auto lost = [this, lock] {
    return fail(error_at(
        session_.address,
        Error(ErrorCode::lost, "lock " + kit::in_quotes(lock.str()) + " is not held any more")));
  };
  const auto claim = session_.claims.find(request);
  const bool held = claim && claim->state == Claim::State::held;
  if (!held) return done(lost());
  const std::string own = session_.keys.own(lock, request, claim->mode);
  const std::string once = session_.keys.once(lock, key);
  wire::TxnRequest txn;
  *txn.add_compare() = created_at(own, claim->created);
  *txn.add_compare() = created_at(once, 0);
  *txn.add_success() = put(once, encode_record(what), 0);
  *txn.add_failure() = get_without_value(own);
  session_.txn(std::move(txn), once_within(context),
               [this, lost, created = claim->created,
                done = std::move(done)](const tl::expected<wire::TxnResponse, Failure>& response) {
                 if (!response) return done(fail(session_.error(response.error())));
                 if (response->succeeded()) return done(std::monostate());
                 const wire::KeyValue* kv = first_kv(*response, 0);
                 const bool still_held = kv != nullptr && kv->create_revision() == created;
                 if (!still_held) return done(lost());
                 done(std::monostate());  // there is a record already, and it stays
               });
}

void EtcdStore::list_keys(LockName lock, CallContext context,
                          Completion<std::vector<std::string>> done) {
  const std::string folder = session_.keys.once(lock);
  wire::TxnRequest txn;
  *txn.add_success() = all_in(folder);
  txn.mutable_success(0)->mutable_range()->set_keys_only(true);
  session_.txn(std::move(txn), repeated_within(context),
               [this, folder,
                done = std::move(done)](const tl::expected<wire::TxnResponse, Failure>& response) {
                 if (!response) return done(fail(session_.error(response.error())));
                 std::vector<std::string> keys;
                 for (const wire::KeyValue& kv : response->responses(0).range().kvs()) {
                   const auto key =
                       percent_decode(std::string_view(kv.key()).substr(folder.size()));
                   if (key) keys.push_back(*key);
                 }
                 std::sort(keys.begin(), keys.end());
                 done(std::move(keys));
               });
}

void EtcdStore::forget(LockName lock, std::string key, CallContext context, Completion<bool> done) {
  const std::string once = session_.keys.once(lock, key);
  wire::TxnRequest txn;
  *txn.add_compare() = created_at(once, 0);
  *txn.add_failure() = erase(once);
  session_.txn(
      std::move(txn), once_within(context),
      [this, done = std::move(done)](const tl::expected<wire::TxnResponse, Failure>& response) {
        if (!response) return done(fail(session_.error(response.error())));
        done(!response->succeeded());
      });
}

Result<std::unique_ptr<Store>> open_store(const Url& url, const OpenOptions& opening) {
  auto options = TRY(Options::of(url));
  return EtcdStore::open(std::move(options), opening.begin());
}

}  // namespace leasehold::etcd
