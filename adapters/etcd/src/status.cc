#include "status.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <set>

namespace leasehold::etcd {
namespace {

using KeyValues = google::protobuf::RepeatedPtrField<wire::KeyValue>;

// Reads keys, then asks for the time that is left of the holders' leases.
class Survey final : public std::enable_shared_from_this<Survey> {
 public:
  Survey(Session& session, CallContext context, Completion<std::vector<LockStatus>> done)
      : session_(session), context_(std::move(context)), done_(std::move(done)) {}

  void begin(std::vector<wire::RequestOp> ranges) {
    wire::TxnRequest txn;
    *txn.add_success() = get(session_.keys.lineage());
    for (wire::RequestOp& range : ranges) *txn.add_success() = std::move(range);
    session_.txn(std::move(txn), repeated_within(context_),
                 [self = shared_from_this()](tl::expected<wire::TxnResponse, Failure> response) {
                   if (!response) return self->done_(fail(self->session_.error(response.error())));
                   self->read(*response);
                 });
  }

 private:
  void read(const wire::TxnResponse& response) {
    const auto store = lineage_in(first_kv(response, 0));
    revision_ = response.header().revision();
    std::map<std::string, FoundKeys> by_lock;
    for (int i = 1; i < response.responses_size(); ++i) {
      for (const wire::KeyValue& kv : response.responses(i).range().kvs()) {
        const auto place = session_.keys.parse(kv.key());
        const bool is_data = place && place->outside && kv.lease() == 0;
        if (!place || is_data) continue;
        FoundKeys& found = by_lock[place->lock.str()];
        if (place->outside) {
          found.at_name = &kv;
        } else {
          found.in_folder.push_back(&kv);
        }
      }
    }
    for (const auto& [name, found] : by_lock) {
      const LockName lock = LockName::parse(name).value();
      locks_.push_back(LockStatus{.lock = lock,
                                  .store = store,
                                  .last_token = std::nullopt,
                                  .holders = {},
                                  .waiters = {},
                                  .known_as = session_.keys.known_as(lock),
                                  .counted_to = revision_});
      LeaseId lease = 0;
      describe(locks_.back(), found, lease);
      holder_leases_.push_back(lease);
    }
    store_ = store;
    ask_for_times();
  }

  struct FoundKeys {
    std::vector<const wire::KeyValue*> in_folder;  // in the order of creation
    const wire::KeyValue* at_name = nullptr;
  };

  // One of our waiters holds the lock only when it has said so.
  void describe(LockStatus& status, const FoundKeys& found, LeaseId& lease) {
    const wire::KeyValue* first = found.in_folder.empty() ? nullptr : found.in_folder.front();
    const wire::KeyValue* holder = holder_of(first, found.at_name);
    const bool at_name = holder == found.at_name;
    const auto value = at_name ? std::nullopt : OwnValue::parse(holder->value());
    const bool is_free = value && value->state == OwnValue::State::waits;
    for (const wire::KeyValue* kv : found.in_folder) {
      if (kv == holder && !is_free) continue;
      // Those who wait have their tokens already.
      if (status.waiters.empty()) status.counted_to = kv->create_revision() - 1;
      status.waiters.push_back(
          {request_at(*kv), owner_of(kv->key(), OwnValue::parse(kv->value()))});
    }
    if (is_free) return;
    const TokenNumber token = TokenNumber::of(holder->create_revision()).value();
    const Millis held_for{value ? std::max<std::int64_t>(0, wall_clock_ms() - value->since_ms) : 0};
    std::string owner = owner_of(holder->key(), value);
    if (found.at_name != nullptr && !at_name)
      owner += ", and " + owner_of(found.at_name->key(), std::nullopt);
    status.last_token = token;
    status.holders = {LockStatus::Holder{.request = request_at(*holder),
                                         .token = token,
                                         .owner = std::move(owner),
                                         .held_for = held_for,
                                         .remaining = Millis(0),
                                         .kept = value && value->state == OwnValue::State::kept,
                                         .foreign = !value}};
    lease = holder->lease();
  }

  RequestId request_at(const wire::KeyValue& kv) const {
    return request_of(session_.keys.parse(kv.key())->leaf, kv.create_revision());
  }

  void ask_for_times() {
    std::set<LeaseId> leases(holder_leases_.begin(), holder_leases_.end());
    leases.erase(0);
    parts_ = static_cast<int>(leases.size()) + 1;
    for (const LeaseId lease : leases) {
      wire::LeaseTimeToLiveRequest request;
      request.set_id(lease);
      session_.transport->call<wire::LeaseTimeToLiveRequest, wire::LeaseTimeToLiveResponse>(
          "/etcdserverpb.Lease/LeaseTimeToLive", std::move(request), repeated_within(context_),
          [self = shared_from_this(),
           lease](tl::expected<wire::LeaseTimeToLiveResponse, Failure> response) {
            self->time_told(lease, response);
          });
    }
    part_is_done();
  }

  void time_told(LeaseId lease,
                 const tl::expected<wire::LeaseTimeToLiveResponse, Failure>& response) {
    {
      MutexLock lock(mutex_);
      if (response && response->ttl() >= 0) {
        // etcd rounds down to whole seconds; this is the most that can be left.
        const std::int64_t most = std::min(response->ttl() + 1, response->granted_ttl());
        remaining_[lease] = std::chrono::seconds(most);
      }
      const bool unknown = !response && !response.error().lease_is_gone();
      if (unknown) failure_ = response.error();
    }
    part_is_done();
  }

  void part_is_done() {
    if (--parts_ > 0) return;
    std::optional<Failure> failure;
    {
      MutexLock lock(mutex_);
      failure = failure_;
      for (std::size_t i = 0; i < locks_.size(); ++i) {
        for (auto& holder : locks_[i].holders) holder.remaining = remaining_[holder_leases_[i]];
      }
    }
    if (failure) return done_(fail(session_.error(*failure)));
    done_(std::move(locks_));
  }

 public:
  std::optional<StoreId> store() const { return store_; }
  std::int64_t revision() const { return revision_; }  // of the store, when it was looked at

 private:
  Session& session_;
  const CallContext context_;
  const Completion<std::vector<LockStatus>> done_;
  std::vector<LockStatus> locks_;
  std::vector<LeaseId> holder_leases_;  // beside locks_
  std::optional<StoreId> store_;
  std::int64_t revision_ = 0;

  std::atomic<int> parts_ = 0;
  Mutex mutex_;
  std::map<LeaseId, Millis> remaining_ LEASEHOLD_GUARDED_BY(mutex_);
  std::optional<Failure> failure_ LEASEHOLD_GUARDED_BY(mutex_);
};

void delete_as_seen(Session& session, const wire::KeyValue& kv, const CallContext& context,
                    Completion<ReleaseReply> done) {
  wire::TxnRequest txn;
  *txn.add_compare() = created_at(kv.key(), kv.create_revision());
  *txn.add_success() = erase(kv.key());
  session.txn(
      std::move(txn), once_within(context),
      [&session, done = std::move(done)](tl::expected<wire::TxnResponse, Failure> response) {
        if (!response) return done(fail(session.error(response.error())));
        done(response->succeeded() ? ReleaseReply::released : ReleaseReply::not_held);
      });
}

}  // namespace

void inspect(Session& session, LockName lock, CallContext context, Completion<LockStatus> done) {
  std::vector<wire::RequestOp> ranges = {all_in(session.keys.folder(lock)),
                                         get(session.keys.known_as(lock))};
  auto survey = std::make_shared<std::weak_ptr<Survey>>();
  auto work = std::make_shared<Survey>(
      session, std::move(context),
      [&session, lock, survey, done = std::move(done)](Result<std::vector<LockStatus>> found) {
        if (!found) return done(fail(std::move(found.error())));
        if (!found->empty()) return done(std::move(found->front()));
        done(LockStatus{.lock = lock,
                        .store = survey->lock()->store(),
                        .last_token = std::nullopt,
                        .holders = {},
                        .waiters = {},
                        .known_as = session.keys.known_as(lock),
                        .counted_to = survey->lock()->revision()});
      });
  *survey = work;
  work->begin(std::move(ranges));
}

void list(Session& session, CallContext context, Completion<std::vector<LockStatus>> done) {
  wire::RequestOp range = all_in(session.keys.locks_begin());
  range.mutable_range()->set_range_end(session.keys.locks_end());
  std::make_shared<Survey>(session, std::move(context), std::move(done))->begin({std::move(range)});
}

// Two steps are safe: whoever has the lock has it as long as its key is there.
void force_release(Session& session, LockName lock, RequestId seen, CallContext context,
                   Completion<ReleaseReply> done) {
  wire::TxnRequest txn;
  *txn.add_success() = first_in(session.keys.folder(lock));
  *txn.add_success() = get(session.keys.known_as(lock));
  session.txn(std::move(txn), repeated_within(context),
              [&session, seen, context,
               done = std::move(done)](tl::expected<wire::TxnResponse, Failure> response) {
                if (!response) {
                  if (response.error().ambiguous()) {
                    response.error().kind = Failure::Kind::not_sent;  // nothing but a look
                  }
                  return done(fail(session.error(response.error())));
                }
                const wire::KeyValue* holder =
                    holder_of(first_kv(*response, 0), lock_at_name(*response, 1));
                if (holder == nullptr) return done(ReleaseReply::not_held);
                const auto place = session.keys.parse(holder->key());
                const bool is_seen =
                    place && request_of(place->leaf, holder->create_revision()) == seen;
                if (!is_seen) return done(ReleaseReply::not_held);
                delete_as_seen(session, *holder, context, std::move(done));
              });
}

}  // namespace leasehold::etcd
