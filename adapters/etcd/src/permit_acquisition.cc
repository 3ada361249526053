#include "permit_acquisition.h"

#include "attempt.h"
#include "permit_view.h"

namespace leasehold::etcd {
namespace {

constexpr int kMostLooks = 100;

// The server cannot count. So the client looks, and its next transaction compares what matters of
// that: nobody came between (unless it has a place), the slot is free, the number is the same. In
// the meantime others can only have gone.
class PermitAcquisition final : public Attempt {
 public:
  PermitAcquisition(Session& session, AcquireCall call, CallContext context,
                    Completion<AcquireReply> done)
      : Attempt(session, std::move(call), std::move(context), std::move(done)) {}

 private:
  using Answer = const wire::TxnResponse&;

  // Takes the first slot if nobody is there; else it looks.
  void enter(LeaseId waiters_lease) override {
    waiters_lease_ = waiters_lease;
    if (std::exchange(wants_place_, false) && waiters_lease != 0) return place();
    slot_ = Slot{};
    wire::TxnRequest txn;
    *txn.add_compare() = nothing_in(folder_);
    *txn.add_compare() = nothing_in(keys().slots(call_.lock));
    for (const KeyRange& another :
         below_but_key(keys().set_permits(call_.lock),
                       keys().set_permits(call_.lock, call_.mode.permits()))) {
      *txn.add_compare() = nothing_in(another);
    }
    take_slot(std::move(txn));
  }

  // If there is one permit, and it was the first who waits, the server can compare all that
  // matters.
  void claim() override {
    const auto known = session_.claims.find(call_.request);
    const bool was_first = known && !known->predecessor.range_end.empty();
    if (!was_first || call_.mode.permits() != 1) return look();
    slot_ = Slot{};
    wire::TxnRequest txn;
    *txn.add_compare() = created_at(own_, created_);
    *txn.add_compare() = nothing_before(below(folder_), created_);
    *txn.add_compare() = nothing_in(keys().slots(call_.lock));
    take_slot(std::move(txn));
  }

  void look() {
    wire::TxnRequest txn;
    PermitView::ask(*txn.mutable_success(), keys(), call_.lock, call_.request);
    send(std::move(txn), [this](Answer response) { seen(response); });
  }

  void seen(Answer response) {
    if (++looks_ > kMostLooks) return failed(changes_too_fast());
    answer_ = response;
    view_.emplace(answer_, keys(), call_.lock, call_.request, call_.mode);
    slot_.reset();
    if (view_->own() == nullptr) return created_ != 0 ? start_anew() : arrive();
    created_ = view_->own()->create_revision();
    if (const auto slot = view_->own_slot()) return has(*slot);
    if (view_->is_withdrawn()) return was_withdrawn();
    if (view_->at_name() != nullptr || !view_->fits()) return wait();
    take(view_->lowest_free_slot());
  }

  Error changes_too_fast() const {
    return error_at(session_.address,
                    Error(ErrorCode::unavailable, "the lock changes faster than it can be taken"));
  }

  // ---- it has no place yet

  void arrive() {
    if (view_->is_withdrawn()) return was_withdrawn();
    if (const auto use = view_->conflict()) return conflicts(use->mode, use->set);
    if (view_->at_name() == nullptr && view_->fits()) return take(view_->lowest_free_slot());
    if (!call_.queue) return busy(*view_->holder());
    wants_place_ = true;
    get_waiters_lease();
  }

  // Only beside those whom it goes with, as it was seen.
  void place() {
    wire::TxnRequest txn;
    const std::string beside = view_->set() ? keys().permits(call_.lock)
                                            : keys().permits(call_.lock, call_.mode.permits());
    for (const KeyRange& range : below_but(folder_, beside)) *txn.add_compare() = nothing_in(range);
    *txn.add_compare() = created_at(own_, 0);
    *txn.add_compare() = nothing_in(withdrawn_);
    compare_number(txn);
    *txn.add_success() = put_own(OwnValue::State::waits, waiters_lease_);
    for (auto* branch : {txn.mutable_success(), txn.mutable_failure()}) {
      PermitView::ask(*branch, keys(), call_.lock, call_.request);
    }
    send(std::move(txn), [this](Answer response) { seen(response); });
  }

  // ---- it fits

  void take(Slot slot) {
    if (const auto left = view_->left_over(slot); left != 0) return clear(slot, left);
    slot_ = slot;
    wire::TxnRequest txn;
    if (const wire::KeyValue* own = view_->own()) {
      *txn.add_compare() = modified_at(own_, own->mod_revision());
    } else {
      *txn.add_compare() = nothing_after(folder_, view_->revision());
    }
    *txn.add_compare() = created_at(keys().slot(call_.lock, slot), 0);
    compare_number(txn);
    take_slot(std::move(txn));
  }

  // Whose it was is gone, and somebody else than Leasehold has deleted that key.
  void clear(Slot slot, std::int64_t modified) {
    const std::string key = keys().slot(call_.lock, slot);
    wire::TxnRequest txn;
    *txn.add_compare() = modified_at(key, modified);
    *txn.add_success() = erase(key);
    for (auto* branch : {txn.mutable_success(), txn.mutable_failure()}) {
      PermitView::ask(*branch, keys(), call_.lock, call_.request);
    }
    send(std::move(txn), [this](Answer response) { seen(response); });
  }

  // By an earlier attempt.
  void has(Slot slot) {
    slot_ = slot;
    slot_created_ = view_->created(slot);
    if (is_on_its_lease(*view_->own())) return granted_again(*view_->own(), view_->lineage());
    wire::TxnRequest txn;
    *txn.add_compare() = modified_at(own_, view_->own()->mod_revision());
    *txn.add_compare() = created_at(keys().slot(call_.lock, slot), slot_created_);
    *txn.add_compare() = nothing_in(withdrawn_);
    *txn.add_success() = put_own(OwnValue::State::held, lease_.id);
    *txn.add_success() = put_on(keys().slot(call_.lock, slot), lease_.id);
    *txn.add_success() = get(keys().lineage());
    send(std::move(txn), [this](Answer response) {
      if (!response.succeeded()) return was_withdrawn();
      granted(created_, first_kv(response, 2));
    });
  }

  void take_slot(wire::TxnRequest txn) {
    *txn.add_compare() = without_lease(name_);
    *txn.add_compare() = nothing_in(withdrawn_);
    *txn.add_success() = put_own(OwnValue::State::held, lease_.id);
    *txn.add_success() =
        put(keys().slot(call_.lock, *slot_), slot_value(call_.request, call_.mode), lease_.id);
    *txn.add_success() = get(keys().lineage());
    PermitView::ask(*txn.mutable_failure(), keys(), call_.lock, call_.request);
    send(std::move(txn), [this](Answer response) {
      if (!response.succeeded()) return seen(response);
      slot_created_ = response.header().revision();
      granted(created_ != 0 ? created_ : slot_created_, first_kv(response, 2));
    });
  }

  // That an operator has set, if one has, is as it was seen.
  void compare_number(wire::TxnRequest& txn) const {
    *txn.add_compare() = view_->set() ? is_there(keys().set_permits(call_.lock, *view_->set()))
                                      : nothing_in(keys().set_permits(call_.lock));
  }

  // ---- it does not fit

  // The first who waits hears of everybody who goes, and of another number. The others hear of the
  // one before them: that it goes, or has come in. So nobody is woken for nothing, and whoever
  // comes in calls the next.
  void wait() {
    const wire::KeyValue& holder = *view_->holder();
    const std::int64_t revision = view_->revision();
    const LeaseId lease = view_->own()->lease();
    if (view_->at_name() != nullptr) return queued(lease, {{name_}}, revision, holder);
    if (const auto before = view_->waits_behind()) {
      return queued(lease, {{.key = *before, .puts = true}}, revision, holder);
    }
    const KeyRange all = below(keys().permits(call_.lock));
    queued(lease, {{all.begin, all.end}, /*permits=*/true}, revision, holder);
  }

  const Keys& keys() const { return session_.keys; }

  int looks_ = 0;
  bool wants_place_ = false;
  wire::TxnResponse answer_;
  std::optional<PermitView> view_;  // of answer_
};

}  // namespace

void acquire_permit(Session& session, AcquireCall call, CallContext context,
                    Completion<AcquireReply> done) {
  std::make_shared<PermitAcquisition>(session, std::move(call), std::move(context), std::move(done))
      ->begin();
}

}  // namespace leasehold::etcd
