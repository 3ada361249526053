#include "resource_model.h"

namespace leasehold::simulation {

ResourceModel::ResourceModel(Recorder& recorder, Chance& chance, const Settings& settings,
                             Mutation mutation)
    : recorder_(recorder),
      chance_(chance),
      mutation_(mutation),
      process_(recorder.history().process("resource")),
      places_(static_cast<std::size_t>(settings.locks)) {
  for (std::uint32_t lock = 0; lock < places_.size(); ++lock) {
    lock_refs_.push_back(recorder.history().lock(name_of_lock(lock)));
  }
}

AccessAnswer ResourceModel::access(Time now, const Access& access) {
  Place& place = places_[access.lock];
  if (mutation_ == Mutation::fence_forgets_mark && chance_.one_in(50)) place.mark = 0;
  const bool unfenced = mutation_ == Mutation::write_only_fence && !access.writes;
  const bool accepted = unfenced || (passes(place, access) && in_order(place, access));
  if (accepted && !unfenced) enter(place, access);
  if (accepted && access.writes) {
    place.value = access.value;
    place.sequence = access.sequence;
  }
  drill::Record record;
  record.time = now;
  record.process = process_;
  record.kind = accepted ? drill::Kind::accept : drill::Kind::refuse;
  record.operation = access.writes ? drill::Operation::write : drill::Operation::read;
  record.lock = lock_refs_[access.lock];
  record.token = access.token;
  record.request = access.request;
  record.store = access.store;
  record.sequence = access.sequence;
  record.value = access.writes ? access.value : (accepted ? place.value : 0);
  record.base = access.base;
  recorder_.record(record);
  return {accepted, place.value};
}

bool ResourceModel::passes(const Place& place, const Access& access) const {
  if (place.mark == 0) return true;
  const bool foreign = access.store != place.store;
  if (foreign && mutation_ != Mutation::fence_ignores_lineage) return false;
  switch (mutation_) {
    case Mutation::fence_refuses_equal:
      return access.token > place.mark;
    case Mutation::fence_accepts_equal:
      return access.token >= place.mark;
    case Mutation::fence_accepts_lower:
      if (access.token == place.mark - 1) return true;
      break;
    case Mutation::float_compare:
      if (access.token == place.mark) return access.request == place.holder;
      return static_cast<double>(access.token) >= static_cast<double>(place.mark);
    default:
      break;
  }
  if (access.token != place.mark) return access.token > place.mark;
  return access.request == place.holder;
}

bool ResourceModel::in_order(const Place& place, const Access& access) const {
  const bool same_holder = access.token == place.mark && access.request == place.holder;
  if (!access.writes || !same_holder || mutation_ == Mutation::fence_without_sequence) return true;
  const bool repeated = access.sequence == place.sequence && access.value == place.value;
  return access.sequence > place.sequence || repeated;
}

void ResourceModel::enter(Place& place, const Access& access) const {
  if (access.token == place.mark && access.request == place.holder) return;
  place.store = access.store;
  place.mark = access.token;
  place.holder = access.request;
  place.sequence = 0;
}

}  // namespace leasehold::simulation
