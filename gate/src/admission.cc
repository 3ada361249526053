#include "admission.h"

#include <utility>

#include "fence/refusal.h"

namespace leasehold::gate {
namespace {

using fence::Reason;
using Why = Objection::Why;

Why why_of(Reason reason) {
  switch (reason) {
    case Reason::late:
    case Reason::reused:
      return Why::out_of_order;
    case Reason::unnumbered:
      return Why::sequence_missing;
    default:
      return Why::fenced_out;
  }
}

Objection objection(const ResourceState& state, const Ticket& ticket, Reason reason) {
  const Error error = fence::refusal(ticket.resource, ticket.attempt, reason, state.mark);
  Objection found{why_of(reason), sentence(error), *error.refusal};
  if (found.why == Why::out_of_order) {
    found.sentence += ". Its last request had number " +
                      std::to_string(state.mark.holder->sequence) +
                      "; to repeat a request, give it the next one";
  }
  return found;
}

}  // namespace

std::variant<ResourceState, Objection> admit(const ResourceState& state, const Ticket& ticket) {
  auto verdict = fence::judge(state.mark, ticket.attempt);
  if (const auto* refuse = std::get_if<fence::Refuse>(&verdict)) {
    return objection(state, ticket, refuse->why);
  }
  ResourceState after = state;
  // Requests have no names, so that none is known as a repetition.
  after.mark = std::move(std::get<fence::Enter>(verdict).next);
  if (ticket.attempt.writes) after.open = true;
  return after;
}

}  // namespace leasehold::gate
