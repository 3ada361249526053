#include "keys.h"

#include <array>
#include <cstring>

#include "kit/text/number.h"

namespace leasehold::etcd {
namespace {

constexpr std::array<std::string_view, 3> kStates = {"held", "waits", "kept"};
constexpr std::string_view kShared = "shared-";
constexpr std::string_view kPermit = "permit-";

std::string_view take_until(std::string_view& text, char end) {
  const std::size_t at = text.find(end);
  const std::string_view taken = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
  return taken;
}

// Nothing if it is not written as we would.
std::optional<std::int64_t> plain_number(std::string_view text) {
  const auto number = kit::number_in<std::int64_t>(text);
  return number && *number >= 0 && std::to_string(*number) == text ? number : std::nullopt;
}

std::optional<Mode> take_mode(std::string_view& leaf) {
  if (leaf.starts_with(kShared)) {
    leaf.remove_prefix(kShared.size());
    return Mode::shared();
  }
  if (!leaf.starts_with(kPermit)) return Mode::exclusive();
  leaf.remove_prefix(kPermit.size());
  const auto number = plain_number(take_until(leaf, '-'));
  if (!number || *number < 1 || *number > Mode::kMostPermits) return std::nullopt;
  return Mode::permit_of(*number);
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

std::optional<Keys::Numbered> Keys::parse_numbered(std::string_view key, std::string_view folder) {
  if (!key.starts_with(folder)) return std::nullopt;
  key.remove_prefix(folder.size());
  const auto name = percent_decode(take_until(key, '/'));
  if (!name) return std::nullopt;
  auto lock = LockName::parse(*name);
  const auto number = plain_number(key);
  if (!lock || !number) return std::nullopt;
  return Numbered{std::move(*lock), *number};
}

std::string leaf_of(const RequestId& request, Mode mode) {
  switch (mode.kind()) {
    case Mode::Kind::exclusive:
      break;
    case Mode::Kind::shared:
      return std::string(kShared) + request.hex();
    case Mode::Kind::permit:
      return std::string(kPermit) + std::to_string(mode.permits()) + "-" + request.hex();
  }
  return request.hex();
}

std::optional<Leaf> Leaf::parse(std::string_view text) {
  const auto mode = take_mode(text);
  const auto request = RequestId::from_hex(text);
  if (!mode || !request) return std::nullopt;
  return Leaf{*request, *mode};
}

Mode mode_of(std::string_view leaf) {
  const auto own = Leaf::parse(leaf);
  return own ? own->mode : Mode::exclusive();
}

std::string slot_value(const RequestId& request, Mode mode) {
  return std::string(kFormat) + " " + leaf_of(request, mode);
}

std::optional<std::string_view> slot_owner(std::string_view value) {
  if (take_until(value, ' ') != kFormat) return std::nullopt;
  return value;
}

std::string OwnValue::str() const {
  std::string text(kFormat);
  text += ' ';
  text += kStates[static_cast<std::size_t>(state)];
  text += ' ';
  text += std::to_string(since_ms);
  text += ' ';
  text += owner;
  if (!note.empty()) text += '\n' + note;
  return text;
}

std::optional<OwnValue> OwnValue::parse(std::string_view text) {
  OwnValue value;
  if (take_until(text, ' ') != kFormat) return std::nullopt;
  const std::string_view word = take_until(text, ' ');
  std::size_t state = 0;
  while (state < kStates.size() && kStates[state] != word) ++state;
  if (state == kStates.size()) return std::nullopt;
  value.state = static_cast<State>(state);
  const auto since = kit::number_in<std::int64_t>(take_until(text, ' '));
  if (!since || *since < 0) return std::nullopt;
  value.since_ms = *since;
  value.owner = readable_label(take_until(text, '\n'));
  value.note = readable_note(text);
  return value;
}

std::string owner_of(std::string_view key, const std::optional<OwnValue>& value) {
  if (value) return value->owner;
  const bool is_ours = Leaf::parse(key.substr(key.rfind('/') + 1)).has_value();
  return std::string(is_ours ? "another version of Leasehold" : "another program") + " (etcd key " +
         readable_label(key) + ")";
}

RequestId request_of(std::string_view leaf, std::int64_t create_revision) {
  if (const auto own = Leaf::parse(leaf)) return own->request;
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
