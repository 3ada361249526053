#include "status.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <set>

#include "slots.h"
#include "store_base/mode_conflict.h"

namespace leasehold::etcd {
namespace {

using KeyValues = google::protobuf::RepeatedPtrField<wire::KeyValue>;

// What was found of one lock.
struct FoundKeys {
  std::vector<const wire::KeyValue*> in_folder;  // in the order of creation
  const wire::KeyValue* at_name = nullptr;
  Slots slots;
  std::optional<std::int64_t> set_permits;
};

// One request of a lock.
struct Standing {
  const wire::KeyValue* kv;
  RequestId request;
  Mode mode;
  std::optional<OwnValue> value;
  std::optional<Slot> slot;
  bool holds;
  std::int64_t token;  // if it waits for a permit, it has none yet
};

// Who could have the lock, and is one of ours, has it only when it has said so.
std::vector<Standing> all_standing(const FoundKeys& found) {
  std::vector<Standing> all;
  bool only_shared = true;
  for (const wire::KeyValue* kv : found.in_folder) {
    const std::string_view leaf = std::string_view(kv->key()).substr(kv->key().rfind('/') + 1);
    const std::int64_t created = kv->create_revision();
    const Mode mode = mode_of(leaf);
    auto value = OwnValue::parse(kv->value());
    const bool in_turn = mode.is_exclusive() ? all.empty() : only_shared;
    const bool says_no = value && value->state == OwnValue::State::waits;
    const auto slot = mode.is_permit() ? found.slots.of(leaf, created) : std::nullopt;
    const bool holds = mode.is_permit() ? slot.has_value() : in_turn && !says_no;
    only_shared = only_shared && mode == Mode::shared();
    all.push_back({kv, request_of(leaf, created), mode, std::move(value), slot, holds,
                   slot ? found.slots.created(*slot) : created});
  }
  return all;
}

LockStatus::Holder as_holder(const Standing& it) {
  const Millis held_for{it.value ? std::max<std::int64_t>(0, wall_clock_ms() - it.value->since_ms)
                                 : 0};
  return {.request = it.request,
          .token = TokenNumber::of(it.token).value(),
          .owner = owner_of(it.kv->key(), it.value),
          .held_for = held_for,
          .remaining = Millis(0),
          .kept = it.value && it.value->state == OwnValue::State::kept,
          .foreign = !it.value,
          .mode = it.mode,
          .slot = it.slot,
          .note = it.value ? it.value->note : ""};
}

// A lock at the name itself.
Standing standing_at_name(const wire::KeyValue& kv) {
  const std::int64_t created = kv.create_revision();
  return {&kv, request_of("", created), {}, {}, {}, true, created};
}

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
      for (const wire::KeyValue& kv : response.responses(i).range().kvs()) sort_in(kv, by_lock);
    }
    for (const auto& [name, found] : by_lock) {
      const LockName lock = LockName::parse(name).value();
      locks_.push_back(LockStatus{.lock = lock,
                                  .store = store,
                                  .last_token = std::nullopt,
                                  .holders = {},
                                  .waiters = {},
                                  .known_as = session_.keys.known_as(lock),
                                  .counted_to = revision_,
                                  .set_permits = found.set_permits});
      describe(locks_.back(), found);
    }
    store_ = store;
    ask_for_times();
  }

  void sort_in(const wire::KeyValue& kv, std::map<std::string, FoundKeys>& by_lock) const {
    const Keys& keys = session_.keys;
    if (const auto slot = Keys::parse_numbered(kv.key(), keys.slots())) {
      const auto lock = by_lock.find(slot->lock.str());
      if (lock != by_lock.end()) lock->second.slots.add(Slot{slot->number}, kv);
      return;
    }
    if (const auto set = Keys::parse_numbered(kv.key(), keys.set_permits())) {
      by_lock[set->lock.str()].set_permits = set->number;
      return;
    }
    const auto place = keys.parse(kv.key());
    const bool is_data = place && place->outside && kv.lease() == 0;
    if (!place || is_data) return;
    FoundKeys& found = by_lock[place->lock.str()];
    if (place->outside) {
      found.at_name = &kv;
    } else {
      found.in_folder.push_back(&kv);
    }
  }

  void describe(LockStatus& status, const FoundKeys& found) {
    std::vector<LeaseId>& leases = holder_leases_.emplace_back();
    const auto add = [&](const Standing& it) {
      status.holders.push_back(as_holder(it));
      leases.push_back(it.kv->lease());
    };
    for (const Standing& it : all_standing(found)) {
      if (it.holds) {
        add(it);
        continue;
      }
      // Those who wait have their tokens already, unless they wait for a slot.
      if (!it.mode.is_permit()) status.counted_to = std::min(*status.counted_to, it.token - 1);
      status.waiters.push_back(
          {it.request, owner_of(it.kv->key(), it.value), it.mode, it.value ? it.value->note : ""});
    }
    if (found.at_name != nullptr && status.holders.empty()) {
      add(standing_at_name(*found.at_name));
    } else if (found.at_name != nullptr) {
      status.holders.front().owner += ", and " + owner_of(found.at_name->key(), std::nullopt);
    }
    for (const LockStatus::Holder& it : status.holders) {
      status.last_token = std::max(status.last_token, std::optional(it.token));
    }
    // One who shares may come in behind those who came later.
    const bool cannot_tell = status.last_token && status.last_token->value() > *status.counted_to;
    if (cannot_tell) status.counted_to.reset();
  }

  void ask_for_times() {
    std::set<LeaseId> leases;
    for (const auto& of_lock : holder_leases_) leases.insert(of_lock.begin(), of_lock.end());
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
        auto& holders = locks_[i].holders;
        for (std::size_t j = 0; j < holders.size(); ++j) {
          holders[j].remaining = remaining_[holder_leases_[i][j]];
        }
        std::sort(holders.begin(), holders.end(),
                  [](const auto& one, const auto& other) { return one.token < other.token; });
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
  std::vector<std::vector<LeaseId>> holder_leases_;  // beside the holders of locks_
  std::optional<StoreId> store_;
  std::int64_t revision_ = 0;

  std::atomic<int> parts_ = 0;
  Mutex mutex_;
  std::map<LeaseId, Millis> remaining_ LEASEHOLD_GUARDED_BY(mutex_);
  std::optional<Failure> failure_ LEASEHOLD_GUARDED_BY(mutex_);
};

// All there is of one lock, as inspect() reads it.
std::vector<wire::RequestOp> all_of(const Session& session, const LockName& lock) {
  return {all_in(session.keys.folder(lock)), get(session.keys.known_as(lock)),
          all_in(session.keys.slots(lock)), all_in(session.keys.set_permits(lock))};
}

FoundKeys found_in(const wire::TxnResponse& response, const Keys& keys) {
  FoundKeys found;
  for (const wire::KeyValue& kv : response.responses(0).range().kvs()) {
    found.in_folder.push_back(&kv);
  }
  found.at_name = lock_at_name(response, 1);
  for (const wire::KeyValue& kv : response.responses(2).range().kvs()) {
    const auto place = Keys::parse_numbered(kv.key(), keys.slots());
    if (place) found.slots.add(Slot{place->number}, kv);
  }
  return found;
}

using Look = std::function<void(const FoundKeys&)>;

template <class Reply>
void look_at(Session& session, const LockName& lock, const CallContext& context,
             const Completion<Reply>& done, Look then) {
  wire::TxnRequest txn;
  for (wire::RequestOp& range : all_of(session, lock)) *txn.add_success() = std::move(range);
  session.txn(
      std::move(txn), repeated_within(context),
      [&session, done, then = std::move(then)](tl::expected<wire::TxnResponse, Failure> response) {
        if (response) return then(found_in(*response, session.keys));
        if (response.error().ambiguous()) {
          response.error().kind = Failure::Kind::not_sent;  // nothing but a look
        }
        done(fail(session.error(response.error())));
      });
}

void delete_as_seen(Session& session, const LockName& lock, const Standing& seen,
                    const CallContext& context, Completion<ReleaseReply> done) {
  wire::TxnRequest txn;
  *txn.add_compare() = created_at(seen.kv->key(), seen.kv->create_revision());
  *txn.add_success() = erase(seen.kv->key());
  if (seen.slot) {
    *txn.add_success() =
        erase_if(session.keys.slot(lock, *seen.slot), slot_value(seen.request, seen.mode));
  }
  session.txn(
      std::move(txn), once_within(context),
      [&session, done = std::move(done)](tl::expected<wire::TxnResponse, Failure> response) {
        if (!response) return done(fail(session.error(response.error())));
        done(response->succeeded() ? ReleaseReply::released : ReleaseReply::not_held);
      });
}

}  // namespace

void inspect(Session& session, LockName lock, CallContext context, Completion<LockStatus> done) {
  std::vector<wire::RequestOp> ranges = all_of(session, lock);
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
  wire::RequestOp locks = all_in(session.keys.locks_begin());
  locks.mutable_range()->set_range_end(session.keys.locks_end());
  std::make_shared<Survey>(session, std::move(context), std::move(done))
      ->begin({std::move(locks), all_in(session.keys.slots()), all_in(session.keys.set_permits())});
}

void find_request(Session& session, const LockName& lock, const RequestId& request,
                  const CallContext& context, Completion<std::optional<Claim>> done) {
  look_at(session, lock, context, done, [lock, request, done](const FoundKeys& found) {
    for (const Standing& it : all_standing(found)) {
      if (it.request != request) continue;
      return done(Claim{
          .lock = lock, .mode = it.mode, .created = it.kv->create_revision(), .slot = it.slot});
    }
    done(std::optional<Claim>());
  });
}

// Two steps are safe: whoever has the lock has it as long as its key is there.
void force_release(Session& session, LockName lock, RequestId seen, CallContext context,
                   Completion<ReleaseReply> done) {
  look_at(session, lock, context, done,
          [&session, lock, seen, context, done](const FoundKeys& found) {
            std::vector<Standing> all = all_standing(found);
            std::erase_if(all, [](const Standing& it) { return !it.holds; });
            if (all.empty() && found.at_name != nullptr) {
              all.push_back(standing_at_name(*found.at_name));
            }
            const auto it = std::find_if(all.begin(), all.end(),
                                         [&](const Standing& one) { return one.request == seen; });
            if (it == all.end()) return done(ReleaseReply::not_held);
            delete_as_seen(session, lock, *it, context, done);
          });
}

void set_permits(Session& session, LockName lock, std::optional<std::int64_t> permits,
                 CallContext context, Completion<std::monostate> done) {
  const std::string all = session.keys.set_permits(lock);
  wire::TxnRequest txn;
  if (permits) {
    const std::string key = session.keys.set_permits(lock, *permits);
    const std::string folder = session.keys.folder(lock);
    for (const KeyRange& range : below_but(folder, session.keys.permits(lock))) {
      *txn.add_compare() = nothing_in(range);
    }
    *txn.add_failure() = first_in(folder);
    *txn.add_compare() = without_lease(session.keys.known_as(lock));
    *txn.add_success() = put(key, "", 0);
    for (const KeyRange& other : below_but_key(all, key)) *txn.add_success() = erase(other);
  } else {
    *txn.add_success() = erase(below(all));
  }
  session.txn(
      std::move(txn), once_within(context),
      [&session, lock,
       done = std::move(done)](const tl::expected<wire::TxnResponse, Failure>& response) {
        if (!response) return done(fail(session.error(response.error())));
        if (response->succeeded()) return done(std::monostate());
        const wire::KeyValue* first = first_kv(*response, 0);
        const auto place = first ? session.keys.parse(first->key()) : std::nullopt;
        const bool is_shared = place && mode_of(place->leaf) == Mode::shared();
        done(fail(in_use_without_permits(lock, is_shared ? Mode::shared() : Mode::exclusive())));
      });
}

}  // namespace leasehold::etcd
