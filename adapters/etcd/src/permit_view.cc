#include "permit_view.h"

#include <algorithm>

namespace leasehold::etcd {
namespace {

// From the end of a branch.
enum Answer { kRequests, kSlots, kSet, kAtName, kFirst, kLineage, kWithdrawn, kAnswers };

int place_of(Answer answer, const wire::TxnResponse& response) {
  return response.responses_size() - kAnswers + answer;
}

}  // namespace

void PermitView::ask(google::protobuf::RepeatedPtrField<wire::RequestOp>& operations,
                     const Keys& keys, const LockName& lock, const RequestId& request) {
  *operations.Add() = all_without_values(keys.folder(lock));
  *operations.Add() = all_in(keys.slots(lock));
  *operations.Add() = first_in(keys.set_permits(lock));
  *operations.Add() = get(keys.known_as(lock));
  *operations.Add() = first_in(keys.folder(lock));
  *operations.Add() = get(keys.lineage());
  *operations.Add() = first_in(keys.withdrawn(request));
}

PermitView::PermitView(const wire::TxnResponse& response, const Keys& keys, const LockName& lock,
                       const RequestId& request, Mode mode)
    : mode_(mode),
      revision_(response.header().revision()),
      at_name_(lock_at_name(response, place_of(kAtName, response))),
      holder_(holder_of(first_kv(response, place_of(kFirst, response)), at_name_)),
      lineage_(first_kv(response, place_of(kLineage, response))),
      withdrawn_(first_kv(response, place_of(kWithdrawn, response)) != nullptr) {
  const auto kvs = [&](Answer answer) -> const auto& {
    return response.responses(place_of(answer, response)).range().kvs();
  };
  for (const wire::KeyValue& kv : kvs(kSlots)) {
    const auto place = Keys::parse_numbered(kv.key(), keys.slots());
    if (!place) continue;
    slots_.add(Slot{place->number}, kv);
    if (unknown_ == nullptr && slots_.find(Slot{place->number})->owner.empty()) unknown_ = &kv;
  }
  for (const wire::KeyValue& kv : kvs(kSet)) {
    const auto place = Keys::parse_numbered(kv.key(), keys.set_permits());
    if (place) set_ = place->number;
  }
  const std::size_t folder = keys.folder(lock).size();
  const std::string own = leaf_of(request, mode);
  for (const wire::KeyValue& kv : kvs(kRequests)) {
    const std::string_view leaf = std::string_view(kv.key()).substr(folder);
    if (leaf == own) own_ = requests_.size();
    requests_.push_back({&kv, leaf, mode_of(leaf), slots_.of(leaf, kv.create_revision())});
  }
}

const wire::KeyValue* PermitView::holder() const {
  const bool is_known = holder_ != nullptr && (holder_ == at_name_ || own_ != std::size_t{0});
  return is_known || unknown_ == nullptr ? holder_ : unknown_;
}

std::optional<PermitView::Use> PermitView::conflict() const {
  if (set_ && *set_ != mode_.permits()) return Use{Mode::permit_of(*set_), true};
  if (requests_.empty() && at_name_ != nullptr) return Use{Mode::exclusive(), false};
  const auto other = std::find_if(requests_.begin(), requests_.end(), [&](const Request& it) {
    return set_ ? !it.mode.is_permit() : it.mode != mode_;
  });
  if (other == requests_.end()) return std::nullopt;
  return Use{other->mode, false};
}

// Without an operator's word the first who uses it says how many there are.
std::int64_t PermitView::permits() const {
  if (set_) return *set_;
  return requests_.empty() ? mode_.permits() : requests_.front().mode.permits();
}

bool PermitView::fits() const {
  std::int64_t used = slots_.unreadable();
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (i < before() || (i != own_ && requests_[i].slot)) ++used;
  }
  return used < permits();
}

Slot PermitView::lowest_free_slot() const {
  auto to_leave =
      std::count_if(requests_.begin(), requests_.begin() + static_cast<std::ptrdiff_t>(before()),
                    [](const Request& it) { return !it.slot; });
  for (Slot slot;; ++slot.number) {
    if (!is_taken(slot) && to_leave-- == 0) return slot;
  }
}

// Whose it was may have been deleted by hand.
bool PermitView::is_taken(Slot slot) const {
  const TakenSlot* taken = slots_.find(slot);
  if (taken == nullptr) return false;
  return taken->owner.empty() ||
         std::any_of(requests_.begin(), requests_.end(), [&](const Request& it) {
           return taken->belongs_to(it.leaf, it.kv->create_revision());
         });
}

std::optional<Slot> PermitView::own_slot() const {
  return own_ ? requests_[*own_].slot : std::nullopt;
}

std::int64_t PermitView::left_over(Slot slot) const {
  const TakenSlot* taken = slots_.find(slot);
  return taken == nullptr ? 0 : taken->modified;
}

std::optional<std::string> PermitView::waits_behind() const {
  if (before() == 0) return std::nullopt;
  const Request& last = requests_[before() - 1];
  return last.slot ? std::nullopt : std::optional(last.kv->key());
}

}  // namespace leasehold::etcd
