#include "leasehold/detail/fence_record.h"

#include <array>
#include <charconv>
#include <cstring>
#include <map>
#include <utility>

#include "leasehold/detail/refusal.h"
#include "leasehold/random.h"

namespace leasehold::detail {
namespace {

constexpr std::string_view kHeading = "leasehold-fence 1";

using Fields = std::map<std::string_view, std::string_view>;

// Lines of a key, a space and a value, after the heading.
std::optional<Fields> fields_in(std::string_view text) {
  Fields fields;
  bool heading = true;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    if (std::exchange(heading, false)) {
      if (line != kHeading) return std::nullopt;
      continue;
    }
    const std::size_t space = line.find(' ');
    if (space == std::string_view::npos) return std::nullopt;
    if (!fields.emplace(line.substr(0, space), line.substr(space + 1)).second) return std::nullopt;
  }
  if (heading) return std::nullopt;
  return fields;
}

std::optional<std::string_view> take(Fields& fields, std::string_view key) {
  const auto node = fields.extract(key);
  if (node.empty()) return std::nullopt;
  return node.mapped();
}

std::optional<std::int64_t> count_in(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

std::optional<FenceRecord::Entered> entered_in(Fields& fields, std::string_view token) {
  const auto number = TokenNumber::parse(token);
  const auto request = RequestId::from_hex(take(fields, "request").value_or(""));
  const auto sequence = count_in(take(fields, "sequence").value_or("0"));
  if (!number || !request || !sequence) return std::nullopt;
  return FenceRecord::Entered{*number, *request, *sequence,
                              std::string(take(fields, "write").value_or(""))};
}

std::optional<Objection> objection(const FenceRecord& record, const FenceAttempt& attempt) {
  const Token& token = attempt.token;
  if (record.lineage && *record.lineage != token.lineage) return Objection::foreign;
  if (token.number.value() < record.threshold()) return Objection::lower;
  if (!record.entered || record.entered->number != token.number) return std::nullopt;
  if (record.entered->request != token.request) return Objection::twice;
  if (attempt.once) return Objection::once;
  const bool late = attempt.sequence != 0 && attempt.sequence < record.entered->sequence;
  return late ? std::optional(Objection::order) : std::nullopt;
}

bool same_holder(const FenceRecord& record, const Token& token) {
  return record.lineage == token.lineage && record.entered &&
         record.entered->number == token.number && record.entered->request == token.request;
}

std::uint64_t fnv(std::string_view bytes, std::uint64_t hash) {
  for (const char byte : bytes) {
    hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  }
  return hash;
}

}  // namespace

std::int64_t FenceRecord::threshold() const {
  if (entered) return entered->number.value();
  return least ? least->value() : 0;
}

std::string FenceRecord::str() const {
  std::string text = std::string(kHeading) + "\n";
  if (lineage) text += "lineage " + lineage->str() + "\n";
  if (least) text += "least " + std::to_string(least->value()) + "\n";
  if (!entered) return text;
  text += "token " + std::to_string(entered->number.value()) + "\n";
  text += "request " + entered->request.hex() + "\n";
  if (entered->sequence != 0) text += "sequence " + std::to_string(entered->sequence) + "\n";
  if (!entered->write.empty()) text += "write " + entered->write + "\n";
  return text;
}

std::optional<FenceRecord> FenceRecord::parse(std::string_view text) {
  auto fields = fields_in(text);
  if (!fields) return std::nullopt;
  FenceRecord record;
  if (const auto found = take(*fields, "lineage")) {
    const auto parsed = Lineage::parse(*found);
    if (!parsed) return std::nullopt;
    record.lineage = *parsed;
  }
  if (const auto found = take(*fields, "least")) {
    const auto parsed = TokenNumber::parse(*found);
    if (!parsed) return std::nullopt;
    record.least = *parsed;
  }
  if (const auto found = take(*fields, "token")) {
    record.entered = entered_in(*fields, *found);
    if (!record.entered) return std::nullopt;
  }
  const bool numbers_without_lineage = (record.entered || record.least) && !record.lineage;
  if (numbers_without_lineage || !fields->empty()) return std::nullopt;
  return record;
}

FenceMark FenceRecord::mark(const ResourceName& resource, std::int64_t refused) const {
  FenceMark mark{resource, std::nullopt, lineage, refused, std::nullopt};
  if (entered) mark.mark = Token{entered->number, *lineage, entered->request};
  return mark;
}

Result<FenceAttempt> attempt_of(const Token& token, const EnterOptions& options, bool writes,
                                const std::vector<std::string>& content) {
  if (auto ok = check_sequence(options.sequence); !ok) return fail(std::move(ok.error()));
  FenceAttempt attempt{
      .token = token, .once = options.entry == Entry::once, .sequence = options.sequence};
  if (attempt.sequence != 0) {
    attempt.write = fingerprint(content);
  } else if (writes || attempt.once) {
    attempt.write = RequestId::random(system_random()).hex();
  }
  return attempt;
}

FenceVerdict judge(const ResourceName& resource, const FenceRecord& record,
                   const FenceAttempt& attempt) {
  const bool same = same_holder(record, attempt.token);
  // The same content under another number is another write.
  const bool same_number =
      attempt.sequence == 0 || (same && record.entered->sequence == attempt.sequence);
  if (same && same_number && !attempt.write.empty() && record.entered->write == attempt.write) {
    return FenceRepeated{};
  }
  if (same && attempt.sequence != 0 && record.entered->sequence == attempt.sequence) {
    return Error(ErrorCode::invalid, "sequence number " + std::to_string(attempt.sequence) +
                                         " was used for another write");
  }
  if (const auto why = objection(record, attempt)) {
    return refusal(resource, attempt.token, *why,
                   {record.lineage ? record.lineage->str() : "", record.threshold(),
                    /*adopted=*/!record.entered});
  }
  FenceRecord next = record;
  next.lineage = attempt.token.lineage;
  next.least.reset();
  if (!same) next.entered = FenceRecord::Entered{attempt.token.number, attempt.token.request};
  if (attempt.sequence != 0) next.entered->sequence = attempt.sequence;
  if (!attempt.write.empty()) next.entered->write = attempt.write;
  return FenceAdmitted{std::move(next)};
}

Status check_sequence(std::int64_t sequence) {
  if (sequence >= 0) return {};
  return fail(ErrorCode::invalid, "a sequence number is " + std::to_string(sequence) +
                                      "; it must be from 1 to 9223372036854775807, or 0 for none");
}

Result<FenceRecord> adopted(const ResourceName& resource, const FenceRecord& record,
                            const Lineage& lineage, TokenNumber at_least) {
  if (record.lineage == lineage) {
    if (record.threshold() == at_least.value()) return record;
    if (record.threshold() > at_least.value()) {
      return fail(would_lower(resource, record.threshold(), at_least));
    }
  }
  FenceRecord next;
  next.lineage = lineage;
  next.least = at_least;
  return next;
}

std::string fingerprint(const std::vector<std::string>& parts) {
  std::uint64_t halves[] = {0xcbf29ce484222325, 0x84222325cbf29ce4};
  for (std::uint64_t& half : halves) {
    for (const std::string& part : parts) {
      half = fnv(std::to_string(part.size()) + ":", half);
      half = fnv(part, half);
    }
  }
  std::array<std::uint8_t, sizeof halves> bytes;
  std::memcpy(bytes.data(), halves, bytes.size());
  return to_hex(bytes);
}

}  // namespace leasehold::detail
