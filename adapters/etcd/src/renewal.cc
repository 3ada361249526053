#include "renewal.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <set>

#include "store_base/renew_replies.h"

namespace leasehold::etcd {
namespace {

constexpr LeaseId kNoLease = 0;
constexpr int kOpsPerTransaction = 100;  // etcd's usual limit is 128

// One keep-alive per lease, and beside it the proof that each key is still there.
class Renewal final : public std::enable_shared_from_this<Renewal> {
 public:
  Renewal(Session& session, std::vector<RenewCall> calls, CallContext context,
          Completion<std::vector<RenewReply>> done)
      : session_(session),
        context_(std::move(context)),
        done_(std::move(done)),
        began_(BootClock::now()) {
    for (RenewCall& call : calls) items_.push_back(Item{.call = std::move(call)});
  }

  void begin() {
    for (Item& item : items_) look_up(item);
    make_leases();
  }

 private:
  struct Item {
    RenewCall call;
    bool held = false;
    Mode mode = {};
    std::int64_t created = 0;
    std::optional<Slot> slot = {};
    std::int64_t slot_created = 0;
    LeaseId lease = 0;
    bool moves = false;   // to the lease that is usual for its TTL now
    bool looked = false;  // the server has told of its key
    bool proved = false;
    std::int64_t revision = 0;  // at which it was proved
    int at = 0;                 // its place among the answers
  };
  struct Proof {
    wire::TxnRequest txn;
    std::vector<Item*> items;
  };

  void look_up(Item& item) {
    const auto claim = session_.claims.find(item.call.request);
    item.held = claim && claim->state == Claim::State::held && began_ < claim->expires;
    if (!item.held) return;
    item.mode = claim->mode;
    item.created = claim->created;
    item.slot = claim->slot;
    item.slot_created = claim->slot_created;
    item.lease = claim->lease;
    const auto usual = session_.leases.current(LeaseKind::locks(item.call.ttl));
    item.moves = !usual || usual->id != claim->lease;
    if (item.moves) wanted_.insert(LeaseKind::locks(item.call.ttl));
  }

  // Only if a renewal asks for another TTL than the grant has, or its lease was replaced.
  void make_leases() {
    if (wanted_.empty()) return send();
    const LeaseKind kind = *wanted_.begin();
    wanted_.erase(wanted_.begin());
    session_.leases.with_lease(
        kind, once_within(context_),
        [self = shared_from_this(), kind](tl::expected<EtcdLease, Failure> lease) {
          if (!lease) self->doubt(lease.error());
          for (Item& item : self->items_) {
            if (item.moves && LeaseKind::locks(item.call.ttl) == kind)
              item.lease = lease ? lease->id : kNoLease;
          }
          self->make_leases();
        });
  }

  void send() {
    // Apart, because a server refuses the whole transaction if one moves to a lease that is gone.
    std::map<LeaseId, Proof> open;  // by where they move to; the others at kNoLease
    std::vector<Proof> proofs;
    std::set<LeaseId> leases;
    for (Item& item : items_) {
      if (!item.held || item.lease == kNoLease) continue;
      leases.insert(item.lease);
      Proof& together = open[item.moves ? item.lease : kNoLease];
      add(together, item);
      if (together.txn.success_size() >= kOpsPerTransaction)
        proofs.push_back(std::exchange(together, {}));
    }
    for (auto& [lease, together] : open) {
      if (!together.items.empty()) proofs.push_back(std::move(together));
    }
    parts_ = static_cast<int>(leases.size() + proofs.size() + 1);
    for (const LeaseId lease : leases) keep_alive(lease);
    for (Proof& proof : proofs) prove(std::move(proof));
    part_is_done();
  }

  void doubt(const Failure& failure) {
    MutexLock lock(mutex_);
    doubt_ = failure;
  }

  void keep_alive(LeaseId lease) {
    session_.leases.refresh(lease, repeated_within(context_),
                            [self = shared_from_this(), lease](tl::expected<bool, Failure> alive) {
                              if (alive) {
                                MutexLock lock(self->mutex_);
                                self->alive_[lease] = *alive;
                              } else {
                                self->doubt(alive.error());
                              }
                              self->part_is_done();
                            });
  }

  void add(Proof& proof, Item& item) const {
    item.at = proof.txn.success_size();
    proof.items.push_back(&item);
    if (item.moves) {
      *proof.txn.add_success() = move(item);
      return;
    }
    *proof.txn.add_success() = get_without_value(key_of(item));
    if (item.slot) *proof.txn.add_success() = get_without_value(slot_of(item));
  }

  void prove(Proof proof) {
    session_.txn(std::move(proof.txn), repeated_within(context_),
                 [self = shared_from_this(), items = std::move(proof.items)](
                     tl::expected<wire::TxnResponse, Failure> response) {
                   if (response) {
                     for (Item* item : items) read(*response, *item);
                   } else {
                     self->doubt(response.error());
                   }
                   self->part_is_done();
                 });
  }

  std::string key_of(const Item& item) const {
    return session_.keys.own(item.call.lock, item.call.request, item.mode);
  }
  std::string slot_of(const Item& item) const {
    return session_.keys.slot(item.call.lock, *item.slot);
  }
  wire::RequestOp move(const Item& item) const {
    wire::RequestOp op;
    wire::TxnRequest& txn = *op.mutable_txn();
    *txn.add_compare() = created_at(key_of(item), item.created);
    *txn.add_compare() = nothing_in(session_.keys.withdrawn(item.call.request));
    *txn.add_success() = put_on(key_of(item), item.lease);
    if (item.slot) {
      *txn.add_compare() = created_at(slot_of(item), item.slot_created);
      *txn.add_success() = put_on(slot_of(item), item.lease);
    }
    return op;
  }

  static void read(const wire::TxnResponse& response, Item& item) {
    item.looked = true;
    item.revision = response.header().revision();
    if (item.moves) {
      item.proved = response.responses(item.at).txn().succeeded();
      return;
    }
    const auto is_there = [&](int index, std::int64_t created) {
      const wire::KeyValue* kv = first_kv(response, index);
      return kv != nullptr && kv->create_revision() == created && kv->lease() == item.lease;
    };
    item.proved =
        is_there(item.at, item.created) && (!item.slot || is_there(item.at + 1, item.slot_created));
  }

  void part_is_done() {
    if (--parts_ == 0) finish();
  }

  void finish() {
    std::map<LeaseId, bool> alive;
    std::optional<Error> doubt;
    {
      MutexLock lock(mutex_);
      alive.swap(alive_);
      if (doubt_) doubt = session_.error(*doubt_);
    }
    std::vector<RenewReply> replies;
    replies.reserve(items_.size());
    for (const Item& item : items_) replies.push_back(reply_to(item, alive));
    done_(unless_all_unknown(std::move(replies), std::move(doubt)));
  }

  RenewReply reply_to(const Item& item, const std::map<LeaseId, bool>& alive) const {
    if (!item.held) return RenewReply::gone;
    const auto lease = alive.find(item.lease);
    const bool is_on_it = item.looked ? item.proved : !item.moves;
    const bool lease_died = lease != alive.end() && !lease->second;
    const bool is_missing = item.looked && !item.proved;
    if (is_missing || (is_on_it && lease_died)) {
      end(item);
      return RenewReply::gone;
    }
    const bool known = item.looked && lease != alive.end();
    if (!known) return RenewReply::unknown;
    return extend(item) ? RenewReply::renewed : RenewReply::gone;
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
    const std::int64_t number = session_.watcher.watch({.key = key_of(item)}, item.revision,
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
  std::map<LeaseId, bool> alive_ LEASEHOLD_GUARDED_BY(mutex_);  // those that were asked about
  std::optional<Failure> doubt_ LEASEHOLD_GUARDED_BY(mutex_);   // why something is unknown
};

}  // namespace

void renew(Session& session, std::vector<RenewCall> calls, CallContext context,
           Completion<std::vector<RenewReply>> done) {
  std::make_shared<Renewal>(session, std::move(calls), std::move(context), std::move(done))
      ->begin();
}

}  // namespace leasehold::etcd
