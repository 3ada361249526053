#include "acquisition.h"

#include <algorithm>

#include "attempt.h"
#include "permit_acquisition.h"

namespace leasehold::etcd {
namespace {

// Exclusive or shared. In the common case that is one transaction: it puts the own key if nobody is
// in the way. An exclusive request has everybody in its way, a shared one all but those who share.
class Acquisition final : public Attempt {
 public:
  Acquisition(Session& session, AcquireCall call, CallContext context,
              Completion<AcquireReply> done)
      : Attempt(session, std::move(call), std::move(context), std::move(done)),
        in_the_way_(call_.mode.is_exclusive()
                        ? std::vector<KeyRange>{below(folder_)}
                        : below_but(folder_, session_.keys.shared(call_.lock))) {}

 private:
  // ---- the first transaction: take the lock if nobody is in the way, else a place in the queue

  void enter(LeaseId waiters_lease) override {
    waiters_lease_ = waiters_lease;
    wire::TxnRequest txn;
    for (const KeyRange& range : in_the_way_) *txn.add_compare() = nothing_in(range);
    *txn.add_compare() = created_at(own_, 0);
    *txn.add_compare() = without_lease(name_);
    *txn.add_compare() = nothing_in(withdrawn_);
    *txn.add_compare() = nothing_in(session_.keys.set_permits(call_.lock));
    *txn.add_success() = put_own(OwnValue::State::held, lease_.id);
    *txn.add_success() = get(session_.keys.lineage());
    // The place is taken before the others are looked at.
    if (waiters_lease != 0) *txn.add_failure() = take_place(waiters_lease);
    *txn.add_failure() = get_without_value(own_);
    *txn.add_failure() = first_in(folder_);
    *txn.add_failure() = get(session_.keys.lineage());
    *txn.add_failure() = get(name_);
    *txn.add_failure() = first_in(session_.keys.set_permits(call_.lock));
    if (waiters_lease != 0) {
      for (const KeyRange& range : in_the_way_) *txn.add_failure() = newest_in(range, 2);
    }
    send(std::move(txn), [this](const wire::TxnResponse& response) { entered(response); });
  }

  wire::RequestOp take_place(LeaseId waiters_lease) const {
    wire::RequestOp op;
    wire::TxnRequest& txn = *op.mutable_txn();
    *txn.add_compare() = created_at(own_, 0);
    *txn.add_compare() = nothing_in(withdrawn_);
    *txn.add_compare() = nothing_in(session_.keys.permits(call_.lock));
    *txn.add_compare() = nothing_in(session_.keys.set_permits(call_.lock));
    *txn.add_success() = put_own(OwnValue::State::waits, waiters_lease);
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
    if (own == nullptr || first == nullptr) {
      return not_in_folder(first, at_name, first_kv(response, base + 4));
    }
    created_ = own->create_revision();
    if (is_on_its_lease(*own)) return granted_again(*own, first_kv(response, base + 2));
    if (first->key() == own_ && at_name != nullptr) {
      return queued(own->lease(), {{name_}}, response.header().revision(), *at_name);
    }
    const wire::KeyValue* before = newest(response, base + 5);
    const bool just_queued = base == 1 && response.responses(0).txn().succeeded();
    if (!just_queued || before == nullptr) return claim();  // that tells who is before
    queued(own->lease(), {{before->key()}}, response.header().revision(),
           *holder_of(first, at_name));
  }

  // Of the answers from `index` on, which are about those in the way.
  const wire::KeyValue* newest(const wire::TxnResponse& response, int index) const {
    const wire::KeyValue* newest = nullptr;
    for (; index < response.responses_size(); ++index) {
      for (const wire::KeyValue& kv : response.responses(index).range().kvs()) {
        if (kv.key() == own_) continue;
        if (newest == nullptr || kv.create_revision() > newest->create_revision()) newest = &kv;
      }
    }
    return newest;
  }

  void not_in_folder(const wire::KeyValue* first, const wire::KeyValue* at_name,
                     const wire::KeyValue* set) {
    const auto permits = set == nullptr
                             ? std::nullopt
                             : Keys::parse_numbered(set->key(), session_.keys.set_permits());
    if (permits) return conflicts(Mode::permit_of(permits->number), /*set=*/true);
    const Mode used = first == nullptr ? Mode() : mode_of(first->key().substr(folder_.size()));
    if (!call_.mode.mixes_with(used)) return conflicts(used, /*set=*/false);
    const wire::KeyValue* holder = holder_of(first, at_name);
    const bool withdrawn = holder == nullptr || waiters_lease_ != 0;
    if (withdrawn) return was_withdrawn();
    if (!call_.queue) return busy(*holder);
    get_waiters_lease();
  }

  // ---- a waiter asks again: is nobody before it in the way now?

  void claim() override {
    wire::TxnRequest txn = take(all_cases());
    *txn.add_failure() = get_without_value(own_);
    *txn.add_failure() = first_in(folder_);
    *txn.add_failure() = get(name_);
    for (const KeyRange& range : in_the_way_) *txn.add_failure() = newest_before(range, created_);
    send(std::move(txn), [this](const wire::TxnResponse& response) { claimed(response); });
  }

  using Case = std::vector<wire::Compare>;

  // etcd compares a range without keys as if it had one that was never created, so that nobody came
  // before, and nobody is there, are two cases. The own key is in the range of an exclusive one.
  std::vector<Case> all_cases() const {
    if (call_.mode.is_exclusive()) return {{nothing_before(in_the_way_.front(), created_)}};
    std::vector<Case> cases = {{}};
    for (const KeyRange& range : in_the_way_) {
      std::vector<Case> more;
      for (const Case& it : cases) {
        more.push_back(it);
        more.back().push_back(nothing_in(range));
        more.push_back(it);
        more.back().push_back(nothing_before(range, created_));
      }
      cases = std::move(more);
    }
    return cases;
  }

  // In the last of the cases or, if it is not so, in one of those before.
  wire::TxnRequest take(std::vector<Case> cases) const {
    wire::TxnRequest txn;
    *txn.add_compare() = created_at(own_, created_);
    *txn.add_compare() = without_lease(name_);
    *txn.add_compare() = nothing_in(withdrawn_);
    for (const wire::Compare& compare : cases.back()) *txn.add_compare() = compare;
    *txn.add_success() = put_own(OwnValue::State::held, lease_.id);
    *txn.add_success() = get(session_.keys.lineage());
    cases.pop_back();
    if (!cases.empty()) *txn.add_failure()->mutable_txn() = take(std::move(cases));
    return txn;
  }

  // Null: in none of the cases.
  static const wire::TxnResponse* taken(const wire::TxnResponse& response) {
    if (response.succeeded()) return &response;
    const bool is_last = response.responses_size() == 0 || !response.responses(0).has_txn();
    return is_last ? nullptr : taken(response.responses(0).txn());
  }

  void claimed(const wire::TxnResponse& response) {
    if (const wire::TxnResponse* found = taken(response)) {
      return granted(created_, first_kv(*found, 1));
    }
    const int base = response.responses(0).has_txn() ? 1 : 0;
    const wire::KeyValue* own = first_kv(response, base);
    const wire::KeyValue* first = first_kv(response, base + 1);
    const wire::KeyValue* at_name = lock_at_name(response, base + 2);
    const wire::KeyValue* before = newest(response, base + 3);
    if (before == nullptr) before = at_name;
    const bool still_there = own != nullptr && own->create_revision() == created_;
    if (still_there && before == nullptr) return was_withdrawn();
    if (!still_there || before == nullptr || first == nullptr) return start_anew();
    queued(own->lease(), {{before->key()}}, response.header().revision(),
           *holder_of(first, at_name));
  }

  const std::vector<KeyRange> in_the_way_;
};

}  // namespace

void acquire(Session& session, AcquireCall call, CallContext context,
             Completion<AcquireReply> done) {
  if (call.mode.is_permit()) {
    return acquire_permit(session, std::move(call), std::move(context), std::move(done));
  }
  std::make_shared<Acquisition>(session, std::move(call), std::move(context), std::move(done))
      ->begin();
}

}  // namespace leasehold::etcd
