#include "node_names.h"

#include <algorithm>
#include <charconv>
#include <limits>

namespace leasehold::zookeeper {
namespace {

constexpr std::string_view kProtected = "_c_";
constexpr std::string_view kLock = "-lock-";
constexpr std::size_t kUuidLength = 36;
constexpr std::string_view kLabelMark = "leasehold 1 ";

bool is_plain(char c, bool first) {
  const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  const bool digit = c >= '0' && c <= '9';
  return letter || digit || c == '_' || c == '-' || (c == '.' && !first);
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::optional<int> hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

std::optional<RequestId> uuid_in(std::string_view name) {
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

RequestId made_up(std::string_view name) {
  RequestId::Bytes bytes;
  const std::uint64_t halves[] = {fnv(name, 0xcbf29ce484222325), fnv(name, 0x84222325cbf29ce4)};
  std::memcpy(bytes.data(), halves, bytes.size());
  return RequestId(bytes);
}

// The server writes "%010d": ten digits, or a sign and at least nine.
std::optional<std::int64_t> sequence_in(std::string_view name) {
  std::size_t begin = name.size();
  while (begin > 0 && name.size() - begin < 10 && is_digit(name[begin - 1])) --begin;
  const std::size_t digits = name.size() - begin;
  std::int64_t number = 0;
  std::from_chars(name.data() + begin, name.data() + name.size(), number);
  const bool sign = begin > 0 && name[begin - 1] == '-';
  if (digits == 9) return sign ? std::optional(-number) : std::nullopt;
  if (digits != 10) return std::nullopt;
  const bool after_dash = sign && begin > 1 && name[begin - 2] == '-';
  const bool too_large = number > std::numeric_limits<std::int32_t>::max();
  return sign && (after_dash || too_large) ? -number : number;
}

}  // namespace

std::string encode(std::string_view text) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string name;
  name.reserve(text.size());
  for (const char c : text) {
    if (is_plain(c, name.empty())) {
      name += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    name += {'%', kHex[byte >> 4], kHex[byte & 15]};
  }
  return name;
}

std::optional<std::string> decode(std::string_view name) {
  std::string text;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] != '%') {
      if (!is_plain(name[i], i == 0)) return std::nullopt;
      text += name[i];
      continue;
    }
    if (i + 2 >= name.size()) return std::nullopt;
    const auto high = hex_digit(name[i + 1]);
    const auto low = hex_digit(name[i + 2]);
    if (!high || !low) return std::nullopt;
    text += static_cast<char>(*high * 16 + *low);
    i += 2;
  }
  if (encode(text) != name) return std::nullopt;
  return text;
}

std::string node_prefix(const RequestId& request) {
  const std::string hex = request.hex();
  std::string name(kProtected);
  name.reserve(kProtected.size() + kUuidLength + kLock.size());
  for (std::size_t i = 0; i < hex.size(); ++i) {
    if (i == 8 || i == 12 || i == 16 || i == 20) name += '-';
    name += hex[i];
  }
  name += kLock;
  return name;
}

std::vector<std::string_view> names_in_order(const std::vector<std::string>& names) {
  struct Numbered {
    std::int64_t number;
    const std::string* name;
  };
  std::vector<Numbered> numbered;
  numbered.reserve(names.size());
  std::int64_t lowest = std::numeric_limits<std::int64_t>::max();
  std::int64_t highest = std::numeric_limits<std::int64_t>::min();
  for (const std::string& name : names) {
    const auto number = sequence_in(name);
    if (!number) continue;
    lowest = std::min(lowest, *number);
    highest = std::max(highest, *number);
    numbered.push_back({*number, &name});
  }
  constexpr std::int64_t kRange = std::int64_t{1} << 32;
  if (!numbered.empty() && highest - lowest > kRange / 2) {
    for (Numbered& it : numbered) it.number += it.number < 0 ? kRange : 0;
  }
  std::sort(numbered.begin(), numbered.end(), [](const Numbered& a, const Numbered& b) {
    return a.number != b.number ? a.number < b.number : *a.name < *b.name;
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
    children.push_back({std::string(name), uuid ? *uuid : made_up(name)});
  }
  return children;
}

std::string_view name_in(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

std::string Label::str() const {
  return std::string(kLabelMark) + std::to_string(session_ms) + " " + owner;
}

std::optional<Label> Label::parse(std::string_view text) {
  if (!text.starts_with(kLabelMark)) return std::nullopt;
  text.remove_prefix(kLabelMark.size());
  Label label;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), label.session_ms);
  if (error != std::errc() || end == text.data() + text.size() || *end != ' ') return std::nullopt;
  if (label.session_ms < 0) return std::nullopt;
  label.owner = text.substr(static_cast<std::size_t>(end - text.data()) + 1);
  if (!OwnerLabel::parse(label.owner)) return std::nullopt;
  return label;
}

}  // namespace leasehold::zookeeper
