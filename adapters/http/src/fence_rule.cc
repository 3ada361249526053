#include "fence_rule.h"

#include "leasehold/detail/refusal.h"

namespace leasehold::http {
namespace {

using Why = Objection::Why;

Objection fenced_out(const ResourceState& state, const Entry& entry, detail::Objection why) {
  const detail::Threshold mark{state.lineage ? state.lineage->str() : "", state.threshold(),
                               /*adopted=*/!state.mark};
  return {Why::fenced_out,
          detail::refusal(entry.resource, entry.token, why, mark).message,
          {entry.token.number.value(), state.threshold()}};
}

std::optional<Objection> judge_token(const ResourceState& state, const Entry& entry) {
  if (state.lineage && *state.lineage != entry.token.lineage) {
    return fenced_out(state, entry, detail::Objection::foreign);
  }
  if (entry.token.number.value() < state.threshold()) {
    return fenced_out(state, entry, detail::Objection::lower);
  }
  if (!state.mark || entry.token.number != state.mark->number) return std::nullopt;
  if (entry.token.request != state.mark->request) {
    return fenced_out(state, entry, detail::Objection::twice);
  }
  if (!entry.once) return std::nullopt;
  return fenced_out(state, entry, detail::Objection::once);
}

std::optional<Objection> judge_sequence(const ResourceState& state, const Entry& entry) {
  if (state.mark != entry.token || state.sequence == 0) return std::nullopt;
  const Refusal numbers{entry.token.number.value(), state.threshold()};
  if (entry.sequence == 0) {
    if (!entry.writes) return std::nullopt;
    return Objection{Why::sequence_missing,
                     "the holder of token " + std::to_string(numbers.offered) +
                         " numbers its requests to resource '" + entry.resource.str() +
                         "', and this one has no sequence number",
                     numbers};
  }
  if (entry.sequence > state.sequence) return std::nullopt;
  return Objection{Why::out_of_order,
                   "request " + std::to_string(entry.sequence) + " of token " +
                       std::to_string(numbers.offered) + " comes after request " +
                       std::to_string(state.sequence) + " to resource '" + entry.resource.str() +
                       "'; to repeat a request, give it the next sequence number",
                   numbers};
}

}  // namespace

std::optional<Objection> judge(const ResourceState& state, const Entry& entry) {
  if (auto objection = judge_token(state, entry)) return objection;
  return judge_sequence(state, entry);
}

ResourceState after_entry(ResourceState state, const Entry& entry) {
  if (state.mark != entry.token) {
    state.lineage = entry.token.lineage;
    state.mark = entry.token;
    state.least = 0;
    state.sequence = 0;
  }
  if (entry.sequence > 0) state.sequence = entry.sequence;
  if (entry.writes) state.open = true;
  return state;
}

Result<ResourceState> after_adoption(ResourceState state, const ResourceName& resource,
                                     const Lineage& lineage, TokenNumber at_least) {
  if (state.lineage == lineage) {
    if (at_least.value() < state.threshold()) {
      return fail(ErrorCode::invalid,
                  "resource '" + resource.str() + "' has let in token " +
                      std::to_string(state.threshold()) +
                      " of this lineage already; a mark never goes down, so the lowest token to "
                      "let in cannot be " +
                      std::to_string(at_least.value()));
    }
    if (at_least.value() == state.threshold()) return state;
  }
  state.lineage = lineage;
  state.mark.reset();
  state.least = at_least.value();
  state.sequence = 0;
  return state;
}

}  // namespace leasehold::http
