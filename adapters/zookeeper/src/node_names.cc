#include "node_names.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "kit/text/number.h"
#include "kit/text/percent.h"
#include "kit/text/visible_text.h"
#include "kit/try.h"

namespace leasehold::zookeeper {
namespace {

constexpr std::string_view kProtected = "_c_";
constexpr std::string_view kLock = "lock-";
constexpr std::string_view kKazooLock = "__lock__";
constexpr std::size_t kUuidLength = 36;
constexpr std::size_t kHexLength = 32;
constexpr std::string_view kShared = "shared-";
constexpr std::string_view kPermitOf = "permit-of-";
constexpr std::string_view kPermits = "permits-";

std::string record_mark() {
  return std::string(kRecordMark) + std::to_string(kFormat) + " ";
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::optional<RequestId> uuid_in(std::string_view name) {
  const std::string_view rest = name.substr(std::min(kHexLength, name.size()));
  if (rest.empty() || rest.starts_with(kKazooLock)) {
    return RequestId::from_hex(name.substr(0, kHexLength));
  }
  if (!name.starts_with(kProtected)) return std::nullopt;
  name.remove_prefix(kProtected.size());
  if (name.size() <= kUuidLength || name[kUuidLength] != '-') return std::nullopt;
  std::string hex;
  for (std::size_t i = 0; i < kUuidLength; ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash != (name[i] == '-')) return std::nullopt;
    if (!dash) hex += name[i];
  }
  return RequestId::from_hex(hex);
}

std::uint64_t fnv(std::string_view text, std::uint64_t hash) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace

std::string encode(std::string_view text) {
  std::string name =
      kit::percent_encoded(text, [](char c) { return kit::is_unreserved(c) && c != '~'; });
  if (name.starts_with('.')) name.replace(0, 1, kit::percent_code('.'));
  return name;
}

std::optional<std::string> decode(std::string_view name) {
  return kit::percent_decoded_as(name, encode);
}

std::string request_prefix(const RequestId& request, Recipe recipe) {
  const std::string hex = request.hex();
  if (recipe == Recipe::kazoo) return hex + std::string(kKazooLock);
  std::string name(kProtected);
  name.reserve(kProtected.size() + kUuidLength + 1);
  for (std::size_t i = 0; i < hex.size(); ++i) {
    if (i == 8 || i == 12 || i == 16 || i == 20) name += '-';
    name += hex[i];
  }
  name += '-';
  return name;
}

std::string node_prefix(const RequestId& request, Recipe recipe, Mode mode) {
  std::string name = request_prefix(request, recipe);
  if (recipe == Recipe::kazoo) return name;
  if (mode.is_permit()) {
    name.append(kPermitOf).append(std::to_string(mode.permits())).append("-");
  } else if (!mode.is_exclusive()) {
    name.append(kShared);
  }
  return name.append(kLock);
}

Mode mode_of(std::string_view name) {
  constexpr std::size_t before = kProtected.size() + kUuidLength + 1;
  const bool ours_by_form = name.size() > before && name.starts_with(kProtected);
  if (!ours_by_form || name.substr(before).starts_with(kLock) || !uuid_in(name)) return {};
  name.remove_prefix(before);
  if (name.starts_with(kShared)) {
    return name.substr(kShared.size()).starts_with(kLock) ? Mode::shared() : Mode();
  }
  if (!name.starts_with(kPermitOf)) return {};
  name.remove_prefix(kPermitOf.size());
  const auto permits = kit::take_number<std::int64_t>(name).value_or(0);
  const bool ours = Mode::permit_of(permits).check() && name.starts_with('-') &&
                    name.substr(1).starts_with(kLock);
  return ours && permits > 0 ? Mode::permit_of(permits) : Mode();
}

std::string permits_name(std::int64_t permits) {
  return std::string(kPermits) + std::to_string(permits);
}

std::optional<std::int64_t> permits_in(std::string_view name) {
  if (!name.starts_with(kPermits)) return std::nullopt;
  const auto permits = kit::number_in<std::int64_t>(name.substr(kPermits.size()));
  const bool ours = permits && *permits > 0 && Mode::permit_of(*permits).check() &&
                    permits_name(*permits) == name;
  return ours ? permits : std::nullopt;
}

// The server writes "%010d": ten digits, or a sign and at least nine.
std::optional<std::int64_t> sequence_in(std::string_view name) {
  std::size_t begin = name.size();
  while (begin > 0 && name.size() - begin < 10 && is_digit(name[begin - 1])) --begin;
  const std::size_t digits = name.size() - begin;
  const std::int64_t number = kit::number_in<std::int64_t>(name.substr(begin)).value_or(0);
  const bool sign = begin > 0 && name[begin - 1] == '-';
  if (digits == 9) return sign ? std::optional(-number) : std::nullopt;
  if (digits != 10) return std::nullopt;
  const bool after_dash = sign && begin > 1 && name[begin - 2] == '-';
  const bool too_large = number > std::numeric_limits<std::int32_t>::max();
  return sign && (after_dash || too_large) ? -number : number;
}

RequestId stay_of(std::string_view name) {
  RequestId::Bytes bytes;
  const std::uint64_t halves[] = {fnv(name, 0xcbf29ce484222325), fnv(name, 0x84222325cbf29ce4)};
  std::memcpy(bytes.data(), halves, bytes.size());
  return RequestId(bytes);
}

std::vector<std::string_view> names_in_order(const std::vector<std::string>& names) {
  struct Numbered {
    bool in_queue;  // not a semaphore's lease
    std::int64_t number;
    const std::string* name;
  };
  std::vector<Numbered> numbered;
  numbered.reserve(names.size());
  std::int64_t lowest = std::numeric_limits<std::int64_t>::max();
  std::int64_t highest = std::numeric_limits<std::int64_t>::min();
  for (const std::string& name : names) {
    const bool of_kazoo = name.size() == kHexLength && RequestId::from_hex(name);
    const auto number = of_kazoo ? 0 : sequence_in(name);
    if (!number) continue;
    lowest = std::min(lowest, *number);
    highest = std::max(highest, *number);
    const bool of_curator = name.find('/') != std::string::npos;
    numbered.push_back({!of_kazoo && !of_curator, *number, &name});
  }
  constexpr std::int64_t kRange = std::int64_t{1} << 32;
  if (!numbered.empty() && highest - lowest > kRange / 2) {
    for (Numbered& it : numbered) it.number += it.number < 0 ? kRange : 0;
  }
  std::sort(numbered.begin(), numbered.end(), [](const Numbered& a, const Numbered& b) {
    return std::tie(a.in_queue, a.number, *a.name) < std::tie(b.in_queue, b.number, *b.name);
  });
  std::vector<std::string_view> ordered;
  ordered.reserve(numbered.size());
  for (const Numbered& it : numbered) ordered.push_back(*it.name);
  return ordered;
}

std::vector<Child> in_order(const std::vector<std::string>& names) {
  std::vector<Child> children;
  children.reserve(names.size());
  for (const std::string_view name : names_in_order(names)) {
    const auto uuid = uuid_in(name);
    children.push_back({std::string(name), uuid ? *uuid : stay_of(name), mode_of(name)});
  }
  return children;
}

std::string_view name_in(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

std::string lineage_text(const StoreId& store) {
  return record_mark() + store.hex();
}

std::optional<StoreId> lineage_in(std::string_view text) {
  const std::string mark = record_mark();
  if (!text.starts_with(mark)) return std::nullopt;
  return StoreId::from_hex(text.substr(mark.size()));
}

Error why_not_ours(const std::string& path, std::string_view text) {
  std::string_view rest = text;
  if (StoreId::from_hex(text)) {
    return Error(ErrorCode::unavailable,
                 path +
                     " was written by an earlier build of Leasehold; begin afresh in another "
                     "folder, or remove this one while nobody uses it");
  }
  if (rest.starts_with(kRecordMark)) {
    rest.remove_prefix(kRecordMark.size());
    const auto format = kit::take_number<std::int64_t>(rest);
    if (format && *format > kFormat) {
      return Error(ErrorCode::unavailable,
                   path + " was written by a later version of Leasehold, in format " +
                       std::to_string(*format) + "; this program knows format " +
                       std::to_string(kFormat) + ", so it needs an update");
    }
  }
  return Error(ErrorCode::unavailable, path + " does not hold what Leasehold writes there");
}

std::string Label::str() const {
  std::string text = record_mark() + std::to_string(session_ms) + " " + owner;
  if (!note.empty()) text += "\n" + note;
  return text;
}

std::optional<Label> Label::parse(std::string_view text) {
  const std::string mark = record_mark();
  if (!text.starts_with(mark)) return std::nullopt;
  text.remove_prefix(mark.size());
  const auto session_ms = kit::take_number<std::int64_t>(text);
  if (!session_ms || *session_ms < 0 || !text.starts_with(' ')) return std::nullopt;
  text.remove_prefix(1);
  const std::size_t line = text.find('\n');
  Label label{*session_ms, std::string(text.substr(0, line))};
  if (line != std::string_view::npos) label.note = text.substr(line + 1);
  const bool noted =
      label.note.empty() ? line == std::string_view::npos : Note::parse(label.note).has_value();
  if (!OwnerLabel::parse(label.owner) || !noted) return std::nullopt;
  return label;
}

std::string who(std::string_view name, const std::string& data) {
  if (const auto label = Label::parse(data)) return label->owner;
  const std::string node = "another program (node " + std::string(name);
  constexpr std::size_t kMostShown = 100;
  const bool says = data.size() <= kMostShown && OwnerLabel::parse(data);
  return node + (says ? ", which says " + kit::in_quotes(data) + ")" : ")");
}

Status check_path(const std::string& path) {
  const auto wrong = [] {
    return fail(ErrorCode::invalid,
                "the path of a node begins with '/' and has no empty parts, no '.' and '..', and "
                "no control characters");
  };
  if (path.size() < 2 || path.front() != '/') return wrong();
  std::string_view rest = path;
  while (!rest.empty()) {
    rest.remove_prefix(1);
    const std::string_view part = rest.substr(0, rest.find('/'));
    if (part == "." || part == ".." || !leasehold::detail::check_name("path", part)) return wrong();
    rest.remove_prefix(part.size());
  }
  if (path == "/zookeeper" || path.starts_with("/zookeeper/")) {
    return fail(ErrorCode::invalid, "the folder /zookeeper belongs to the server itself");
  }
  return {};
}

}  // namespace leasehold::zookeeper
