#include "leasehold/detail/refusal.h"

namespace leasehold::detail {
namespace {

std::string reason(const ResourceName& resource, const Token& token, Objection why,
                   const Threshold& threshold) {
  const std::string mark = std::to_string(threshold.token);
  switch (why) {
    case Objection::foreign:
      return " of lineage " + token.lineage.str() + ": it follows lineage " + threshold.lineage +
             " (mark " + mark +
             "). A lineage names the store and lock that count the tokens, and numbers of two "
             "lineages cannot be compared. All who write must take the lock from one "
             "store. If that store was replaced on purpose, run `leasehold fence adopt URL '" +
             resource.str() + "' --lineage '" + token.lineage.str() + "' --at-least " +
             std::to_string(token.number.value()) + "`";
    case Objection::lower:
      if (threshold.adopted) {
        return ": its lineage was adopted from token " + mark + " on, and this one is lower";
      }
      return ": its mark is " + mark + ", so another holder has entered since";
    case Objection::twice:
      return ": its mark is " + mark +
             " from another request id; the store has granted this number twice";
    case Objection::once:
      return ": its mark is " + mark + " already, and in once mode a token enters once";
    case Objection::order:
      return ": this holder has done a write with a higher sequence number, so this one is late";
  }
  return "";
}

Objection objection(const Token& token, const Threshold& mark, bool once) {
  if (mark.lineage != token.lineage.str()) return Objection::foreign;
  if (token.number.value() < mark.token) return Objection::lower;
  return once ? Objection::once : Objection::twice;
}

}  // namespace

Error refusal(const ResourceName& resource, const Token& token, Objection why,
              const Threshold& mark) {
  Error error(ErrorCode::fenced_out, "resource '" + resource.str() + "' refused token " +
                                         std::to_string(token.number.value()) +
                                         reason(resource, token, why, mark));
  error.refusal = Refusal{token.number.value(), mark.token};
  return error;
}

Error refusal(const ResourceName& resource, const Token& token, const Threshold& mark, bool once) {
  return refusal(resource, token, objection(token, mark, once), mark);
}

Error would_lower(const ResourceName& resource, std::int64_t mark, TokenNumber at_least) {
  return Error(ErrorCode::invalid,
               "resource '" + resource.str() + "' follows this lineage already and its mark is " +
                   std::to_string(mark) + "; going back to " + std::to_string(at_least.value()) +
                   " would let stale holders in");
}

Error marks_not_kept() {
  return Error(ErrorCode::unavailable,
               "a trigger that keeps marks from being lowered and deleted is gone, disabled or "
               "another one; install the fence again");
}

Error unknown_resource(const ResourceName& resource) {
  return Error(ErrorCode::invalid,
               "the fence knows no resource '" + resource.str() + "'; nothing was reset");
}

}  // namespace leasehold::detail
