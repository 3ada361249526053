#include "record.h"

#include <algorithm>
#include <charconv>
#include <map>

namespace leasehold::files {
namespace {

constexpr std::string_view kHeading = "leasehold-fence 1";
constexpr std::string_view kEnd = "end";

std::string line(std::string_view key, const std::string& value) {
  return std::string(key) + " " + value + "\n";
}

std::optional<std::string_view> take_line(std::string_view& rest) {
  const std::size_t end = rest.find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view found = rest.substr(0, end);
  rest.remove_prefix(end + 1);
  return found;
}

using Fields = std::map<std::string_view, std::string_view>;

std::optional<Fields> fields_of(std::string_view text) {
  if (take_line(text) != kHeading) return std::nullopt;
  Fields fields;
  for (;;) {
    const auto next = take_line(text);
    if (!next) return std::nullopt;
    if (*next == kEnd) break;
    const std::size_t space = next->find(' ');
    if (space == std::string_view::npos) return std::nullopt;
    if (!fields.emplace(next->substr(0, space), next->substr(space + 1)).second)
      return std::nullopt;
  }
  if (!text.empty()) return std::nullopt;
  return fields;
}

std::optional<std::string_view> take(Fields& fields, std::string_view key) {
  const auto found = fields.find(key);
  if (found == fields.end()) return std::nullopt;
  const std::string_view value = found->second;
  fields.erase(found);
  return value;
}

std::optional<std::int64_t> count_in(std::optional<std::string_view> text) {
  if (!text) return std::nullopt;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size() || value < 0) return std::nullopt;
  return value;
}

std::optional<TokenNumber> number_in(std::string_view text) {
  const auto number = TokenNumber::parse(text);
  return number ? std::optional(*number) : std::nullopt;
}

std::optional<Entered> entered_from(Fields& fields, std::string_view token) {
  const auto number = number_in(token);
  const auto request = RequestId::from_hex(take(fields, "request").value_or(""));
  const auto sequence = count_in(take(fields, "sequence"));
  if (!number || !request || !sequence) return std::nullopt;
  return Entered{*number, *request, *sequence};
}

bool is_version_name(std::string_view text) {
  return text.size() == 32 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace

std::int64_t Record::threshold() const {
  if (entered) return entered->number.value();
  return least ? least->value() : 0;
}

std::string to_text(const Record& record) {
  std::string text = std::string(kHeading) + "\n";
  if (record.lineage) text += line("lineage", record.lineage->str());
  if (record.least) text += line("least", std::to_string(record.least->value()));
  if (record.entered) {
    text += line("token", std::to_string(record.entered->number.value()));
    text += line("request", record.entered->request.hex());
    text += line("sequence", std::to_string(record.entered->sequence));
  }
  text += line("refused", std::to_string(record.refused));
  if (!record.previous.empty()) text += line("previous", record.previous);
  return text + std::string(kEnd) + "\n";
}

std::optional<Record> record_from(std::string_view text) {
  auto fields = fields_of(text);
  if (!fields) return std::nullopt;
  Record record;
  if (const auto lineage = take(*fields, "lineage")) {
    const auto parsed = Lineage::parse(*lineage);
    if (!parsed) return std::nullopt;
    record.lineage = *parsed;
  }
  if (const auto least = take(*fields, "least")) {
    record.least = number_in(*least);
    if (!record.least) return std::nullopt;
  }
  if (const auto token = take(*fields, "token")) {
    record.entered = entered_from(*fields, *token);
    if (!record.entered) return std::nullopt;
  }
  if ((record.entered || record.least) && !record.lineage) return std::nullopt;
  const auto refused = count_in(take(*fields, "refused"));
  if (!refused) return std::nullopt;
  record.refused = *refused;
  if (const auto previous = take(*fields, "previous")) {
    if (!is_version_name(*previous)) return std::nullopt;
    record.previous = *previous;
  }
  if (!fields->empty()) return std::nullopt;
  return record;
}

FenceMark to_mark(const ResourceName& resource, const Record& record) {
  FenceMark mark{resource, std::nullopt, record.lineage, record.refused, std::nullopt};
  if (record.entered) {
    mark.mark = Token{record.entered->number, *record.lineage, record.entered->request};
  }
  return mark;
}

}  // namespace leasehold::files
