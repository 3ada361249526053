#include "fence/rule.h"

#include <optional>
#include <utility>

#include "fence/refusal.h"

namespace leasehold::fence {
namespace {

template <class Entered>
bool is_below(const Token& token, const std::optional<Entered>& entered) {
  return entered && token.number < entered->number;
}

template <class Entered>
bool is_double_of(const Token& token, const std::optional<Entered>& entered) {
  return entered && token.number == entered->number && token.request != entered->request;
}

// What the token alone is refused for.
std::optional<Reason> objection(const Mark& mark, const Token& token, Access access) {
  if (mark.lineage && *mark.lineage != token.lineage) return Reason::foreign;
  if (!mark.knows_store) return Reason::unknown;
  if (token.number.value() <= mark.floor) return Reason::swept;
  if (mark.least && token.number < *mark.least) return Reason::adopted;
  if (is_below(token, mark.holder)) return Reason::lower;
  if (access == Access::write && is_below(token, mark.reader)) return Reason::lower;
  if (is_double_of(token, mark.holder) || is_double_of(token, mark.reader)) return Reason::twice;
  return std::nullopt;
}

bool is_repetition(const Mark::Holder& last, const Attempt& attempt) {
  // The same content under another number is another write.
  const bool same_number = attempt.sequence == 0 || attempt.sequence == last.sequence;
  return same_number && !attempt.write.empty() && attempt.write == last.write;
}

// What the holder is refused for that has entered before.
std::optional<Reason> objection(const Mark::Holder& last, const Attempt& attempt) {
  if (attempt.single) return Reason::again;
  if (attempt.sequence == 0) {
    return attempt.writes && last.sequence != 0 ? std::optional(Reason::unnumbered) : std::nullopt;
  }
  if (attempt.sequence > last.sequence) return std::nullopt;
  const bool reused = attempt.sequence == last.sequence && !attempt.write.empty();
  return reused ? Reason::reused : Reason::late;
}

// What was adopted or swept still says which lower ones may not come beside it.
Mark after_reading(const Mark& mark, const Token& token) {
  const bool is_known = mark.threshold() >= token.number.value() && (mark.holder || mark.reader);
  if (is_known) return mark;
  Mark next = mark;
  next.lineage = token.lineage;
  next.reader = Mark::Reader{token.number, token.request};
  return next;
}

Mark after_writing(const Mark& mark, const Attempt& attempt) {
  const Token& token = attempt.token;
  Mark next{.lineage = token.lineage, .holder = mark.holder};
  if (!mark.is_held_by(token)) next.holder = Mark::Holder{token.number, token.request};
  if (attempt.sequence != 0) next.holder->sequence = attempt.sequence;
  const bool is_a_write = attempt.writes || attempt.sequence != 0 || !attempt.write.empty();
  if (is_a_write) next.holder->write = attempt.write;
  return next;
}

}  // namespace

Verdict judge(const Mark& mark, const Attempt& attempt) {
  if (const auto why = objection(mark, attempt.token, attempt.access)) return Refuse{*why};
  if (attempt.access == Access::read) return Enter{after_reading(mark, attempt.token)};
  if (mark.is_held_by(attempt.token)) {
    if (is_repetition(*mark.holder, attempt)) return Repeat{};
    if (const auto why = objection(*mark.holder, attempt)) return Refuse{*why};
  }
  return Enter{after_writing(mark, attempt)};
}

Result<Mark> adopted(const ResourceName& resource, const Mark& mark, const Lineage& lineage,
                     TokenNumber at_least) {
  if (mark.lineage == lineage) {
    const bool is_swept = at_least.value() <= mark.floor;
    if (mark.threshold() == at_least.value() && !is_swept) return mark;
    if (mark.threshold() > at_least.value() || is_swept) {
      return fail(would_lower(resource, mark.threshold(), at_least));
    }
  }
  // Where there is no mark, the floor stands for the one that was swept.
  if (!mark.lineage && at_least.value() <= mark.floor) {
    return fail(below_the_floor(resource, mark.floor, at_least));
  }
  return Mark{.lineage = lineage, .least = at_least};
}

}  // namespace leasehold::fence
