#include "keys.h"

#include <array>
#include <charconv>
#include <cstring>

namespace leasehold::etcd {
namespace {

constexpr std::string_view kDigits = "0123456789ABCDEF";
constexpr std::array<std::string_view, 3> kStates = {"held", "waits", "kept"};

bool stays(unsigned char byte) {
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
         (byte >= '0' && byte <= '9') || byte == '-' || byte == '.' || byte == '_' || byte == '~';
}

template <class Number>
std::optional<Number> number_in(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string_view take_until(std::string_view& text, char end) {
  const std::size_t at = text.find(end);
  const std::string_view taken = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
  return taken;
}

}  // namespace

std::string percent_encode(std::string_view text) {
  std::string encoded;
  encoded.reserve(text.size());
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    if (stays(byte)) {
      encoded += letter;
    } else {
      encoded += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return encoded;
}

std::optional<std::string> percent_decode(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (stays(static_cast<unsigned char>(text[i]))) {
      decoded += text[i];
      continue;
    }
    if (text[i] != '%' || i + 2 >= text.size()) return std::nullopt;
    const std::size_t high = kDigits.find(text[i + 1]);
    const std::size_t low = kDigits.find(text[i + 2]);
    if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
    decoded += static_cast<char>(high * 16 + low);
    i += 2;
  }
  if (percent_encode(decoded) != text) return std::nullopt;
  return decoded;
}

std::string end_of_prefix(std::string prefix) {
  while (!prefix.empty()) {
    const auto last = static_cast<unsigned char>(prefix.back());
    if (last < 0xff) {
      prefix.back() = static_cast<char>(last + 1);
      return prefix;
    }
    prefix.pop_back();
  }
  return std::string(1, '\0');  // etcd's word for "to the end"
}

std::optional<Keys::Place> Keys::parse(std::string_view key) const {
  if (!key.starts_with(prefix_)) return std::nullopt;
  key.remove_prefix(prefix_.size());
  const std::size_t slash = key.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const auto name = percent_decode(key.substr(0, slash));
  if (!name) return std::nullopt;
  auto lock = LockName::parse(*name);
  if (!lock) return std::nullopt;
  return Place{std::move(*lock), key.substr(slash + 1)};
}

std::string OwnValue::str() const {
  std::string text(kStates[static_cast<std::size_t>(state)]);
  text += ' ';
  text += std::to_string(since_ms);
  text += ' ';
  text += owner;
  return text;
}

std::optional<OwnValue> OwnValue::parse(std::string_view text) {
  OwnValue value;
  const std::string_view word = take_until(text, ' ');
  std::size_t state = 0;
  while (state < kStates.size() && kStates[state] != word) ++state;
  if (state == kStates.size()) return std::nullopt;
  value.state = static_cast<State>(state);
  const auto since = number_in<std::int64_t>(take_until(text, ' '));
  if (!since || *since < 0) return std::nullopt;
  value.since_ms = *since;
  value.owner = readable_label(text);
  return value;
}

std::string owner_of(std::string_view key, const std::optional<OwnValue>& value) {
  return value ? value->owner : "another program (etcd key " + readable_label(key) + ")";
}

RequestId request_of(std::string_view leaf, std::int64_t create_revision) {
  if (const auto own = RequestId::from_hex(leaf)) return *own;
  RequestId::Bytes bytes{'f', 'o', 'r', 'e', 'i', 'g', 'n', ' '};
  for (std::size_t i = 0; i < 8; ++i) {
    bytes[8 + i] = static_cast<std::uint8_t>(create_revision >> (8 * (7 - i)));
  }
  return RequestId(bytes);
}

std::string encode_record(const OnceRecord& record) {
  return std::to_string(record.parameters.size()) + "\n" + record.parameters + record.result;
}

std::optional<OnceRecord> decode_record(std::string_view text) {
  const auto length = number_in<std::size_t>(take_until(text, '\n'));
  if (!length || *length > text.size()) return std::nullopt;
  return OnceRecord{std::string(text.substr(0, *length)), std::string(text.substr(*length))};
}

}  // namespace leasehold::etcd
