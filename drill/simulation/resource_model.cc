#include "resource_model.h"

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
    places_.push_back({LockName::parse(name_of_lock(lock)).value()});
    lock_refs_.push_back(recorder.history().lock(name_of_lock(lock)));
  }
}

AccessAnswer ResourceModel::access(Time now, const Access& access) {
  Place& place = places_[access.lock];
  if (mutation_ == Mutation::fence_forgets_mark && chance_.one_in(50)) place.mark = {};
  const bool unfenced = mutation_ == Mutation::write_only_fence && !access.writes;
  auto verdict = unfenced ? fence::Repeat{} : judge(place, attempt_of(place, access));
  const bool accepted = !std::holds_alternative<fence::Refuse>(verdict);
  if (auto* enter = std::get_if<fence::Enter>(&verdict)) place.mark = std::move(enter->next);
  if (accepted && access.writes) place.value = access.value;
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

fence::Attempt ResourceModel::attempt_of(const Place& place, const Access& access) const {
  const drill::History& history = recorder_.history();
  fence::Attempt attempt{.token = {TokenNumber::of(access.token).value(),
                                   {history.store_id(access.store), place.name},
                                   history.request_id(access.request)},
                         .writes = access.writes};
  if (access.writes && mutation_ != Mutation::fence_without_sequence) {
    attempt.sequence = access.sequence;
    attempt.write = std::to_string(access.value);
  }
  return attempt;
}

fence::Verdict ResourceModel::judge(const Place& place, const fence::Attempt& attempt) const {
  const auto& holder = place.mark.holder;
  if (!holder) return fence::judge(place.mark, attempt);
  const std::int64_t mark = holder->number.value();
  const std::int64_t number = attempt.token.number.value();
  fence::Attempt mutated = attempt;
  switch (mutation_) {
    case Mutation::fence_ignores_lineage:
      mutated.token.lineage = *place.mark.lineage;
      break;
    case Mutation::fence_refuses_equal:
      if (number == mark) return fence::Refuse{fence::Reason::lower};
      break;
    case Mutation::fence_accepts_equal:
      if (number == mark) mutated.token.request = holder->request;
      break;
    case Mutation::fence_accepts_lower:
      if (number == mark - 1) return fence::judge({}, attempt);
      break;
    case Mutation::float_compare:
      if (number < mark && static_cast<double>(number) == static_cast<double>(mark)) {
        return fence::judge({}, attempt);
      }
      break;
    default:
      break;
  }
  return fence::judge(place.mark, mutated);
}

}  // namespace leasehold::simulation
