#include "leasehold/detail/refusal.h"

namespace leasehold::detail {
namespace {

std::string why_foreign(const Threshold& mark) {
  return "it follows lineage " + mark.lineage + " (mark " + std::to_string(mark.token) +
         "). A lineage names the store and lock that count the tokens, and numbers of two lineages "
         "cannot be compared. If the store was replaced on purpose, run `leasehold fence adopt`";
}

std::string why_order(std::int64_t number, const Threshold& mark, bool once) {
  if (number < mark.token) {
    return "its mark is " + std::to_string(mark.token) + ", so another holder has entered since";
  }
  const std::string its_mark = "its mark is " + std::to_string(number);
  if (once) return its_mark + " already, and in once mode a token enters once";
  return its_mark + " from another request id; the store has granted this number twice";
}

}  // namespace

Error refusal(const ResourceName& resource, const Token& token, const Threshold& mark, bool once) {
  const std::int64_t number = token.number.value();
  const bool foreign = mark.lineage != token.lineage.str();
  Error error(ErrorCode::fenced_out,
              "resource '" + resource.str() + "' refused token " + std::to_string(number) +
                  (foreign ? " of lineage " + token.lineage.str() : "") + ": " +
                  (foreign ? why_foreign(mark) : why_order(number, mark, once)));
  error.refusal = Refusal{number, mark.token};
  return error;
}

Error would_lower(const ResourceName& resource, std::int64_t mark, TokenNumber at_least) {
  return Error(ErrorCode::invalid,
               "resource '" + resource.str() + "' follows this lineage already and its mark is " +
                   std::to_string(mark) + "; going back to " + std::to_string(at_least.value()) +
                   " would let stale holders in");
}

}  // namespace leasehold::detail
