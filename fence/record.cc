#include "fence/record.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "fence/refusal.h"

namespace leasehold::fence {
namespace {

constexpr std::string_view kHeading = "leasehold-fence ";
constexpr std::int64_t kVersion = 2;
constexpr std::string_view kEnd = "end";

std::string line(std::string_view key, std::string_view value) {
  return std::string(key) + " " + std::string(value) + "\n";
}

std::string line(std::string_view key, std::int64_t value) {
  return line(key, std::to_string(value));
}

std::optional<std::string_view> take_line(std::string_view& rest) {
  const std::size_t end = rest.find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view found = rest.substr(0, end);
  rest.remove_prefix(end + 1);
  return found;
}

// What is between the heading and the end.
std::optional<Lines> lines_in(std::string_view text) {
  Lines lines;
  for (;;) {
    const auto next = take_line(text);
    if (!next) return std::nullopt;
    if (*next == kEnd) break;
    const std::size_t space = next->find(' ');
    if (space == std::string_view::npos) return std::nullopt;
    if (!lines.emplace(next->substr(0, space), next->substr(space + 1)).second) return std::nullopt;
  }
  if (!text.empty()) return std::nullopt;
  return lines;
}

// Takes values out of the lines; once one makes no sense, the whole does not.
class Reader {
 public:
  explicit Reader(Lines& lines) : lines_(lines) {}

  bool ok() const { return ok_; }

  // Nothing if there is no such line.
  template <class Parse>
  auto take(std::string_view key, Parse parse) -> decltype(parse(std::string())) {
    const auto found = lines_.find(key);
    if (found == lines_.end()) return std::nullopt;
    const std::string text = std::move(found->second);
    lines_.erase(found);
    auto value = parse(text);
    if (!value) ok_ = false;
    return value;
  }

  std::optional<TokenNumber> number(std::string_view key) {
    return take(key, [](const std::string& text) { return some(TokenNumber::parse(text)); });
  }
  std::optional<Lineage> lineage(std::string_view key) {
    return take(key, [](const std::string& text) { return some(Lineage::parse(text)); });
  }
  std::optional<RequestId> request(std::string_view key) {
    return take(key, [](const std::string& text) { return RequestId::from_hex(text); });
  }
  std::optional<std::string> word(std::string_view key) {
    return take(key, [](const std::string& text) {
      return text.empty() ? std::nullopt : std::optional(text);
    });
  }
  // Two lines that come together or not at all.
  std::optional<std::pair<TokenNumber, RequestId>> grant(std::string_view number_key,
                                                         std::string_view request_key) {
    const auto its_number = number(number_key);
    const auto its_request = request(request_key);
    if (its_number.has_value() != its_request.has_value()) ok_ = false;
    if (!its_number || !its_request) return std::nullopt;
    return std::pair(*its_number, *its_request);
  }

 private:
  template <class T>
  static std::optional<T> some(Result<T> parsed) {
    return parsed ? std::optional(std::move(*parsed)) : std::nullopt;
  }

  Lines& lines_;
  bool ok_ = true;
};

std::int64_t value_of(const std::optional<TokenNumber>& number) {
  return number ? number->value() : 0;
}

// Takes the lines of the mark and leaves the others.
std::optional<Mark> take_mark(Lines& lines) {
  Reader reader(lines);
  Mark mark{.lineage = reader.lineage("lineage"),
            .least = reader.number("least"),
            .floor = value_of(reader.number("floor"))};
  if (const auto grant = reader.grant("token", "request")) {
    mark.holder = Mark::Holder{grant->first, grant->second, value_of(reader.number("sequence")),
                               reader.word("write").value_or("")};
  }
  if (const auto grant = reader.grant("read-token", "read-request")) {
    mark.reader = Mark::Reader{grant->first, grant->second};
  }
  const bool numbers_without_lineage = mark.threshold() != 0 && !mark.lineage;
  if (!reader.ok() || numbers_without_lineage) return std::nullopt;
  return mark;
}

}  // namespace

std::string to_text(const Mark& mark, const Lines& own) {
  std::string text = std::string(kHeading) + std::to_string(kVersion) + "\n";
  if (mark.lineage) text += line("lineage", mark.lineage->str());
  if (mark.least) text += line("least", mark.least->value());
  if (mark.floor != 0) text += line("floor", mark.floor);
  if (mark.holder) {
    text += line("token", mark.holder->number.value());
    text += line("request", mark.holder->request.hex());
    if (mark.holder->sequence != 0) text += line("sequence", mark.holder->sequence);
    if (!mark.holder->write.empty()) text += line("write", mark.holder->write);
  }
  if (mark.reader) {
    text += line("read-token", mark.reader->number.value());
    text += line("read-request", mark.reader->request.hex());
  }
  for (const auto& [key, value] : own) text += line(key, value);
  return text + std::string(kEnd) + "\n";
}

Result<Record> read_record(const ResourceName& resource, std::string_view text,
                           std::string_view remove, std::initializer_list<std::string_view> own) {
  const auto heading = take_line(text);
  if (!heading || !heading->starts_with(kHeading)) return fail(damaged_mark(resource));
  const auto version = TokenNumber::parse(heading->substr(kHeading.size()));
  if (!version) return fail(damaged_mark(resource));
  if (version->value() != kVersion) {
    return fail(other_version(resource, version->value(), kVersion, remove));
  }
  auto lines = lines_in(text);
  auto mark = lines ? take_mark(*lines) : std::nullopt;
  const bool whole = mark && std::all_of(lines->begin(), lines->end(), [&](const auto& each) {
                       return std::find(own.begin(), own.end(), each.first) != own.end();
                     });
  if (!whole) return fail(damaged_mark(resource));
  return Record{std::move(*mark), std::move(*lines)};
}

}  // namespace leasehold::fence
