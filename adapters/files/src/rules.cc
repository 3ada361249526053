#include "rules.h"

#include <limits>
#include <optional>

#include "leasehold/detail/refusal.h"

namespace leasehold::files {
namespace {

using detail::Objection;

std::optional<Objection> objection(const Record& record, const Attempt& attempt) {
  const std::int64_t offered = attempt.token.number.value();
  const std::int64_t mark = record.threshold();
  if (record.lineage && *record.lineage != attempt.token.lineage) return Objection::foreign;
  if (offered < mark) return Objection::lower;
  if (!record.entered || offered > mark) return std::nullopt;
  if (record.entered->request != attempt.token.request) return Objection::twice;
  return attempt.entry == Entry::once ? std::optional(Objection::once) : std::nullopt;
}

std::int64_t last_sequence(const Record& record, const Token& token) {
  const bool same_holder = record.entered && record.entered->number == token.number;
  return same_holder ? record.entered->sequence : 0;
}

}  // namespace

Verdict judge(const ResourceName& resource, const Record& record, const Attempt& attempt) {
  const detail::Threshold mark{record.lineage ? record.lineage->str() : "", record.threshold(),
                               /*adopted=*/!record.entered};
  if (const auto why = objection(record, attempt)) {
    return Refused{detail::refusal(resource, attempt.token, *why, mark)};
  }
  const std::int64_t last = last_sequence(record, attempt.token);
  std::int64_t sequence = last;
  if (attempt.writes) {
    if (!attempt.sequence && last == std::numeric_limits<std::int64_t>::max()) {
      return Refused{Error(ErrorCode::invalid, "no sequence number is left for this holder")};
    }
    sequence = attempt.sequence ? *attempt.sequence : last + 1;
    if (sequence <= last) {
      return Refused{detail::refusal(resource, attempt.token, Objection::order, mark),
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
    return fail(detail::would_lower(resource, record.threshold(), at_least));
  }
  Record next = record;
  next.lineage = lineage;
  next.least = at_least;
  next.entered.reset();
  return next;
}

}  // namespace leasehold::files
