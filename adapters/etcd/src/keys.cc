#include "keys.h"

#include <array>
#include <cstring>

#include "kit/text/number.h"

namespace leasehold::etcd {
namespace {

constexpr std::array<std::string_view, 3> kStates = {"held", "waits", "kept"};

std::string_view take_until(std::string_view& text, char end) {
  const std::size_t at = text.find(end);
  const std::string_view taken = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
  return taken;
}

}  // namespace

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
  const auto name = percent_decode(key.substr(0, slash));
  if (!name) return std::nullopt;
  auto lock = LockName::parse(*name);
  if (!lock) return std::nullopt;
  if (slash == std::string_view::npos) return Place{std::move(*lock), {}, true};
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
  const auto since = kit::number_in<std::int64_t>(take_until(text, ' '));
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
  const auto length = kit::number_in<std::size_t>(take_until(text, '\n'));
  if (!length || *length > text.size()) return std::nullopt;
  return OnceRecord{std::string(text.substr(0, *length)), std::string(text.substr(*length))};
}

}  // namespace leasehold::etcd
