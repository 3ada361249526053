#include "fence/refusal.h"
#include "kit/text/other_version.h"
#include "kit/text/visible_text.h"

namespace leasehold::fence {
namespace {

std::string words(const Token& token, Reason why, const Threshold& threshold) {
  const std::string mark = std::to_string(threshold.token);
  switch (why) {
    case Reason::foreign:
      return " of lineage " + token.lineage.str() + ": it follows lineage " + threshold.lineage +
             " (mark " + mark +
             "). A lineage names the store and lock that count the tokens, and numbers of two "
             "lineages cannot be compared. All who write must take the lock from one store";
    case Reason::swept:
      return ": marks up to " + mark +
             " were swept, so this one is too old to be judged. Take the lock anew: its next token "
             "is higher";
    case Reason::unknown:
      return " of store " + token.lineage.store.hex() +
             ": marks were swept here, and none of this store was known then. If its tokens are to "
             "be let in, an operator runs `leasehold fence admit URL " +
             token.lineage.store.hex() + "`";
    case Reason::adopted:
      return ": its lineage was adopted from token " + mark + " on, and this one is lower";
    case Reason::lower:
      return ": its mark is " + mark + ", so another holder has entered since";
    case Reason::twice:
      return ": its mark is " + mark +
             " from another request id; the store has granted this number twice";
    case Reason::again:
      return ": its mark is " + mark +
             " already, and with single entry a token enters only one time";
    case Reason::late:
      return ": this holder has come with this or a higher sequence number before, so this one is "
             "late";
    case Reason::reused:
      return ": its sequence number was used for another write";
    case Reason::unnumbered:
      return ": its holder numbers its writes, and this one has no sequence number";
  }
  return "";
}

std::int64_t compared_with(const Mark& mark, const Attempt& attempt, Reason why) {
  if (why == Reason::swept) return mark.floor;
  if (why == Reason::adopted) return mark.least->value();
  if (why == Reason::twice) return attempt.token.number.value();
  const bool below_a_writer = why == Reason::lower && attempt.access == Access::read;
  return below_a_writer ? mark.holder->number.value() : mark.threshold();
}

ErrorCode code_of(Reason why) {
  const bool wrong_number = why == Reason::reused || why == Reason::unnumbered;
  return wrong_number ? ErrorCode::invalid : ErrorCode::fenced_out;
}

Reason reason_of(const Token& token, const Threshold& mark, bool single) {
  if (mark.lineage != token.lineage.str()) return Reason::foreign;
  if (token.number.value() < mark.token) return mark.adopted ? Reason::adopted : Reason::lower;
  return single && mark.request == token.request.hex() ? Reason::again : Reason::twice;
}

}  // namespace

std::optional<Reason> reason_named(std::string_view name) {
  for (const Reason why :
       {Reason::foreign, Reason::swept, Reason::unknown, Reason::adopted, Reason::lower,
        Reason::twice, Reason::again, Reason::late, Reason::reused, Reason::unnumbered}) {
    if (to_string(why) == name) return why;
  }
  return std::nullopt;
}

Error refusal(const ResourceName& resource, const Token& token, Reason why, const Threshold& mark) {
  Error error(code_of(why), "resource " + kit::in_quotes(resource.str()) + " refused token " +
                                std::to_string(token.number.value()) + words(token, why, mark));
  error.refusal = Refusal{token.number.value(), mark.token, why, mark.lineage};
  if (why == Reason::foreign) {
    error.refusal->adopt = "--lineage " + kit::in_quotes(token.lineage.str()) + " --at-least " +
                           std::to_string(token.number.value()) + " " +
                           kit::operands({resource.str()});
  }
  return error;
}

Error refusal(const ResourceName& resource, const Attempt& attempt, Reason why, const Mark& mark) {
  return refusal(resource, attempt.token, why,
                 {mark.lineage ? mark.lineage->str() : "", compared_with(mark, attempt, why),
                  /*adopted=*/!mark.holder});
}

Error refusal(const ResourceName& resource, const Token& token, const Threshold& mark,
              bool single) {
  return refusal(resource, token, reason_of(token, mark, single), mark);
}

Error would_lower(const ResourceName& resource, std::int64_t mark, TokenNumber at_least) {
  return Error(ErrorCode::invalid, "resource " + kit::in_quotes(resource.str()) +
                                       " follows this lineage already and its mark is " +
                                       std::to_string(mark) + "; going back to " +
                                       std::to_string(at_least.value()) +
                                       " would let stale holders in");
}

Error below_the_floor(const ResourceName& resource, std::int64_t floor, TokenNumber at_least) {
  return Error(ErrorCode::invalid, "resource " + kit::in_quotes(resource.str()) +
                                       " has no mark, and marks of this store up to " +
                                       std::to_string(floor) + " were swept; adopting from " +
                                       std::to_string(at_least.value()) +
                                       " on would let stale holders in");
}

Error marks_not_kept() {
  return Error(ErrorCode::unavailable,
               "a trigger that keeps marks from being lowered and deleted is gone, disabled or "
               "another one; install the fence again");
}

Error damaged_mark(const ResourceName& resource) {
  return Error(ErrorCode::unavailable, "the mark of resource " + kit::in_quotes(resource.str()) +
                                           " is damaged: it was not written by the fence");
}

Error other_version(const ResourceName& resource, std::int64_t found, std::int64_t known,
                    std::string_view remove) {
  return Error(ErrorCode::unavailable,
               "the mark of resource " + kit::in_quotes(resource.str()) +
                   " was written by version " + std::to_string(found) +
                   " of the fence, and this program knows version " + std::to_string(known) +
                   kit::remedy_for_version(found, known,
                                           "stop all who hold a lock, since the fence forgets who "
                                           "has entered, and " +
                                               std::string(remove)));
}

Error unknown_resource(const ResourceName& resource) {
  return Error(ErrorCode::invalid, "the fence knows no resource " + kit::in_quotes(resource.str()) +
                                       "; nothing was reset");
}

}  // namespace leasehold::fence
