#include "rules.h"

#include <limits>

namespace leasehold::files {
namespace {

Error refusal(const ResourceName& resource, const Token& token, std::int64_t mark,
              const std::string& why) {
  Error error(ErrorCode::fenced_out, "'" + resource.str() + "' refused token " +
                                         std::to_string(token.number.value()) + why);
  error.refusal = Refusal{token.number.value(), mark};
  return error;
}

std::string foreign(const Token& token, const Record& record) {
  return " of lineage " + token.lineage.str() + ": it follows lineage " + record.lineage->str() +
         " (mark " + std::to_string(record.threshold()) +
         "). A lineage names the store and lock that count the tokens, and numbers of two lineages "
         "cannot be compared. If the store was replaced on purpose, run `leasehold fence adopt`";
}

// Why the token itself may not enter; empty: it may.
std::string objection(const Record& record, const Attempt& attempt) {
  const std::int64_t offered = attempt.token.number.value();
  const std::int64_t mark = record.threshold();
  if (record.lineage && *record.lineage != attempt.token.lineage) {
    return foreign(attempt.token, record);
  }
  if (offered < mark) {
    return ": its mark is " + std::to_string(mark) + ", so another holder has entered since";
  }
  if (!record.entered || offered > mark) return "";
  if (record.entered->request != attempt.token.request) {
    return ": its mark is " + std::to_string(mark) +
           " from another request id; the store has granted this number twice";
  }
  if (attempt.entry == Entry::once) {
    return ": its mark is " + std::to_string(mark) +
           " already, and in once mode a token enters once";
  }
  return "";
}

std::int64_t last_sequence(const Record& record, const Token& token) {
  const bool same_holder = record.entered && record.entered->number == token.number;
  return same_holder ? record.entered->sequence : 0;
}

}  // namespace

Verdict judge(const ResourceName& resource, const Record& record, const Attempt& attempt) {
  const std::int64_t mark = record.threshold();
  if (const std::string why = objection(record, attempt); !why.empty()) {
    return Refused{refusal(resource, attempt.token, mark, why)};
  }
  const std::int64_t last = last_sequence(record, attempt.token);
  std::int64_t sequence = last;
  if (attempt.writes) {
    if (!attempt.sequence && last == std::numeric_limits<std::int64_t>::max()) {
      return Refused{Error(ErrorCode::invalid, "no sequence number is left for this holder")};
    }
    sequence = attempt.sequence ? *attempt.sequence : last + 1;
    if (sequence <= last) {
      return Refused{refusal(resource, attempt.token, mark,
                             ": its holder's write " + std::to_string(sequence) +
                                 " comes after its write " + std::to_string(last)),
                     sequence == last};
    }
  }
  Record next = record;
  next.lineage = attempt.token.lineage;
  next.least.reset();
  next.entered = Entered{attempt.token.number, attempt.token.request, sequence};
  return Admitted{std::move(next)};
}

Result<Record> adopted(const ResourceName& resource, const Record& record, const Lineage& lineage,
                       TokenNumber at_least) {
  const bool same = record.lineage == lineage;
  if (same && record.threshold() == at_least.value()) return record;
  if (same && record.threshold() > at_least.value()) {
    return fail(ErrorCode::invalid,
                "'" + resource.str() + "' follows this lineage already and its mark is " +
                    std::to_string(record.threshold()) + "; going back to " +
                    std::to_string(at_least.value()) + " would let stale holders in");
  }
  Record next = record;
  next.lineage = lineage;
  next.least = at_least;
  next.entered.reset();
  return next;
}

}  // namespace leasehold::files
