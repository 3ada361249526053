#include "renewal.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <set>

namespace leasehold::etcd {
namespace {

constexpr std::size_t kOpsPerTransaction = 100;  // etcd's usual limit is 128

// One keep-alive per lease, and beside it the proof that each key is still there.
class Renewal final : public std::enable_shared_from_this<Renewal> {
 public:
  Renewal(Session& session, std::vector<RenewCall> calls, CallContext context,
          Completion<std::vector<RenewReply>> done)
      : session_(session),
        context_(std::move(context)),
        done_(std::move(done)),
        began_(BootClock::now()) {
    for (RenewCall& call : calls) items_.push_back(Item{std::move(call)});
  }

  void begin() {
    for (Item& item : items_) look_up(item);
    make_leases();
  }

 private:
  struct Item {
    RenewCall call;
    bool held = false;
    std::int64_t created = 0;
    LeaseId lease = 0;
    bool moves = false;  // to the lease of another TTL
    bool proved = false;
    std::int64_t revision = 0;  // at which it was proved
  };

  void look_up(Item& item) {
    const auto claim = session_.claims.find(item.call.request);
    item.held = claim && claim->state == Claim::State::held && began_ < claim->expires;
    if (!item.held) return;
    item.created = claim->created;
    item.lease = claim->lease;
    const auto usual = session_.leases.current(LeaseKind::locks(item.call.ttl));
    item.moves = !usual || usual->id != claim->lease;
    if (item.moves) wanted_.insert(LeaseKind::locks(item.call.ttl));
  }

  // Only if a renewal asks for another TTL than the grant has.
  void make_leases() {
    if (wanted_.empty()) return send();
    const LeaseKind kind = *wanted_.begin();
    wanted_.erase(wanted_.begin());
    session_.leases.with_lease(
        kind, once_within(context_),
        [self = shared_from_this(), kind](tl::expected<EtcdLease, Failure> lease) {
          if (!lease) return self->done_(fail(self->session_.error(lease.error())));
          for (Item& item : self->items_) {
            if (item.moves && LeaseKind::locks(item.call.ttl) == kind) item.lease = lease->id;
          }
          self->make_leases();
        });
  }

  void send() {
    std::vector<Item*> held;
    std::set<LeaseId> leases;
    for (Item& item : items_) {
      if (!item.held) continue;
      held.push_back(&item);
      leases.insert(item.lease);
    }
    const std::size_t transactions = (held.size() + kOpsPerTransaction - 1) / kOpsPerTransaction;
    parts_ = static_cast<int>(leases.size() + transactions + 1);
    for (const LeaseId lease : leases) keep_alive(lease);
    for (std::size_t at = 0; at < held.size(); at += kOpsPerTransaction) {
      const auto end = held.begin() +
                       static_cast<std::ptrdiff_t>(std::min(held.size(), at + kOpsPerTransaction));
      prove({held.begin() + static_cast<std::ptrdiff_t>(at), end});
    }
    part_is_done();
  }

  void keep_alive(LeaseId lease) {
    session_.leases.refresh(lease, repeated_within(context_),
                            [self = shared_from_this(), lease](tl::expected<bool, Failure> alive) {
                              {
                                MutexLock lock(self->mutex_);
                                if (!alive) self->failure_ = std::move(alive.error());
                                if (alive && *alive) self->alive_.insert(lease);
                              }
                              self->part_is_done();
                            });
  }

  void prove(std::vector<Item*> held) {
    wire::TxnRequest txn;
    for (const Item* item : held) *txn.add_success() = item->moves ? move(*item) : look(*item);
    session_.txn(std::move(txn), repeated_within(context_),
                 [self = shared_from_this(),
                  held = std::move(held)](tl::expected<wire::TxnResponse, Failure> response) {
                   if (response) {
                     for (std::size_t i = 0; i < held.size(); ++i) {
                       self->read(*response, static_cast<int>(i), *held[i]);
                     }
                   } else if (!response.error().lease_is_gone()) {
                     MutexLock lock(self->mutex_);
                     self->failure_ = std::move(response.error());
                   }
                   self->part_is_done();
                 });
  }

  wire::RequestOp look(const Item& item) const {
    return get_without_value(session_.keys.own(item.call.lock, item.call.request));
  }
  wire::RequestOp move(const Item& item) const {
    const std::string key = session_.keys.own(item.call.lock, item.call.request);
    wire::RequestOp op;
    *op.mutable_txn()->add_compare() = created_at(key, item.created);
    wire::RequestOp* put_back = op.mutable_txn()->add_success();
    *put_back = put(key, "", item.lease);
    put_back->mutable_put()->set_ignore_value(true);
    return op;
  }

  static void read(const wire::TxnResponse& response, int index, Item& item) {
    item.revision = response.header().revision();
    if (item.moves) {
      item.proved = response.responses(index).txn().succeeded();
      return;
    }
    const wire::KeyValue* kv = first_kv(response, index);
    item.proved =
        kv != nullptr && kv->create_revision() == item.created && kv->lease() == item.lease;
  }

  void part_is_done() {
    if (--parts_ == 0) finish();
  }

  void finish() {
    std::set<LeaseId> alive_leases;
    std::optional<Failure> failure;
    {
      MutexLock lock(mutex_);
      alive_leases.swap(alive_);
      failure.swap(failure_);
    }
    if (failure) return done_(fail(session_.error(*failure)));
    std::vector<RenewReply> replies;
    replies.reserve(items_.size());
    for (const Item& item : items_) {
      const bool alive = item.held && item.proved && alive_leases.contains(item.lease);
      replies.push_back(alive && extend(item) ? RenewReply::renewed : RenewReply::gone);
      if (item.held && !alive) end(item);
    }
    done_(std::move(replies));
  }

  // False if it has ended meanwhile, and its key is being deleted.
  bool extend(const Item& item) const {
    bool extended = false;
    bool watched = true;
    session_.claims.change(item.call.request, [&](Claim& claim) {
      extended = claim.state == Claim::State::held && claim.created == item.created;
      if (!extended) return;
      const auto lease = session_.leases.find(item.lease);
      claim.lease = item.lease;
      claim.expires = began_ + (lease ? lease->ttl : item.call.ttl.length());
      watched = claim.own_watch != 0;
    });
    if (extended && !watched) watch(item);
    return extended;
  }

  // A lock that is held for longer is worth a watch: its holder hears at once if it is taken away.
  void watch(const Item& item) const {
    const std::int64_t number =
        session_.watcher.watch(session_.keys.own(item.call.lock, item.call.request), item.revision,
                               item.call.request, Watched::own);
    session_.claims.change(item.call.request, [&](Claim& claim) { claim.own_watch = number; });
  }

  void end(const Item& item) const {
    session_.claims.change(item.call.request, [&](Claim& claim) {
      if (claim.state == Claim::State::held && claim.created == item.created) {
        claim.state = Claim::State::over;
      }
    });
  }

  Session& session_;
  const CallContext context_;
  const Completion<std::vector<RenewReply>> done_;
  const BootTime began_;
  std::vector<Item> items_;
  std::set<LeaseKind> wanted_;

  std::atomic<int> parts_ = 0;
  Mutex mutex_;
  std::set<LeaseId> alive_ LEASEHOLD_GUARDED_BY(mutex_);
  std::optional<Failure> failure_ LEASEHOLD_GUARDED_BY(mutex_);
};

}  // namespace

void renew(Session& session, std::vector<RenewCall> calls, CallContext context,
           Completion<std::vector<RenewReply>> done) {
  std::make_shared<Renewal>(session, std::move(calls), std::move(context), std::move(done))
      ->begin();
}

}  // namespace leasehold::etcd
