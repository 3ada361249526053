#include "resource_model.h"

#include <algorithm>
#include <string>
#include <utility>

namespace leasehold::simulation {

ResourceModel::ResourceModel(Recorder& recorder, Chance& chance, const Settings& settings,
                             Mutation mutation)
    : recorder_(recorder),
      chance_(chance),
      mutation_(mutation),
      process_(recorder.history().process("resource")) {
  for (std::uint32_t lock = 0; lock < static_cast<std::uint32_t>(settings.locks); ++lock) {
    const std::string name = name_of_lock(lock);
    lock_refs_.push_back(recorder.history().lock(name));
    const bool by_slot = settings.uses[lock].permits > 0;
    for (std::size_t slot = 0; slot < kMostSlots; ++slot) {
      const auto number = static_cast<std::int64_t>(slot);
      places_.push_back({{lock, by_slot ? std::optional(Slot{number}) : std::nullopt},
                         LockName::parse(name).value()});
    }
  }
}

drill::Record ResourceModel::record(Time now, const Place& place) const {
  drill::Record record;
  record.time = now;
  record.process = process_;
  record.lock = lock_refs_[place.where.lock];
  return record;
}

VisitAnswer ResourceModel::visit(Time now, const Visit& visit) {
  Place& place = places_[index(visit.where)];
  if (mutation_ == Mutation::fence_forgets_mark && chance_.one_in(50)) place.mark = {};
  const bool unfenced = mutation_ == Mutation::write_only_fence && !visit.writes;
  const fence::Attempt attempt = attempt_of(place, visit);
  auto verdict =
      unfenced ? fence::Repeat{} : judge(mark_of(place, attempt.token.lineage.store), attempt);
  const bool accepted = !std::holds_alternative<fence::Refuse>(verdict);
  if (auto* enter = std::get_if<fence::Enter>(&verdict)) {
    const bool traceless =
        mutation_ == Mutation::fence_forgets_readers && visit.mode == Mode::shared();
    if (!traceless) place.mark = std::move(enter->next);
    place.entered = now;
  }
  if (accepted && visit.writes) place.value = visit.value;
  drill::Record record = this->record(now, place);
  record.kind = accepted ? drill::Kind::accept : drill::Kind::refuse;
  record.operation = visit.writes ? drill::Operation::write : drill::Operation::read;
  record.token = visit.token;
  record.request = visit.request;
  record.store = visit.store;
  record.sequence = visit.sequence;
  record.value = visit.writes ? visit.value : (accepted ? place.value : 0);
  record.base = visit.base;
  record.set_mode(visit.mode, visit.where.slot);
  recorder_.record(record);
  return {accepted, place.value};
}

// Where nobody has entered, the floor stands in.
fence::Mark ResourceModel::mark_of(const Place& place, const StoreId& store) const {
  if (has_mark(place) || floors_.empty()) return place.mark;
  if (mutation_ == Mutation::floor_not_heeded) return place.mark;
  const auto floor = floors_.find(store);
  if (floor == floors_.end()) return {.knows_store = false};
  return {.floor = floor->second};
}

bool ResourceModel::sweep(Time now, Time before) {
  bool any = false;
  for (Place& place : places_) {
    if (!has_mark(place) || place.entered >= before) continue;
    any = true;
    const StoreId store = place.mark.lineage->store;
    std::int64_t& floor = floors_[store];
    if (floor < place.mark.threshold()) {
      floor = place.mark.threshold();
      drill::Record raised = record(now, place);
      raised.kind = drill::Kind::sweep;
      raised.lock = 0;
      raised.store = recorder_.history().store(store);
      raised.token = floor;
      recorder_.record(raised);
    }
    place.mark = {};
    drill::Record swept = record(now, place);
    swept.kind = drill::Kind::sweep;
    if (place.where.slot) swept.set_mode(Mode::permit_of(kMostSlots), place.where.slot);
    recorder_.record(swept);
  }
  return any;
}

fence::Attempt ResourceModel::attempt_of(const Place& place, const Visit& visit) const {
  const drill::History& history = recorder_.history();
  fence::Attempt attempt{.token = {TokenNumber::of(visit.token).value(),
                                   {history.store_id(visit.store), place.lock},
                                   history.request_id(visit.request)},
                         .access = visit.mode == Mode::shared() ? Access::read : Access::write,
                         .writes = visit.writes};
  if (visit.writes && mutation_ != Mutation::fence_without_sequence) {
    attempt.sequence = visit.sequence;
    attempt.write = std::to_string(visit.value);
  }
  return attempt;
}

fence::Verdict ResourceModel::judge(const fence::Mark& mark, const fence::Attempt& attempt) const {
  const auto& holder = mark.holder;
  if (!holder) return fence::judge(mark, attempt);
  const std::int64_t highest = holder->number.value();
  const std::int64_t number = attempt.token.number.value();
  fence::Attempt mutated = attempt;
  switch (mutation_) {
    case Mutation::fence_ignores_lineage:
      mutated.token.lineage = *mark.lineage;
      break;
    case Mutation::fence_refuses_equal:
      if (number == highest) return fence::Refuse{fence::Reason::lower};
      break;
    case Mutation::fence_accepts_equal:
      if (number == highest) mutated.token.request = holder->request;
      break;
    case Mutation::fence_accepts_lower:
      if (number == highest - 1) return fence::judge({}, attempt);
      break;
    case Mutation::fence_lets_any_reader_in:
      if (attempt.access == Access::read) return fence::Enter{mark};
      break;
    case Mutation::float_compare:
      if (number < highest && static_cast<double>(number) == static_cast<double>(highest)) {
        return fence::judge({}, attempt);
      }
      break;
    default:
      break;
  }
  return fence::judge(mark, mutated);
}

}  // namespace leasehold::simulation
