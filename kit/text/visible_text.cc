#include "kit/text/visible_text.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "kit/text/utf8.h"
#include "leasehold/id.h"

namespace leasehold::kit {
namespace {

// What turns the direction of writing, so that a line reads as another one, and what no document
// may contain.
bool misleads(std::uint32_t point) {
  return point == 0x061C || point == 0x200E || point == 0x200F ||
         (point >= 0x202A && point <= 0x202E) || (point >= 0x2066 && point <= 0x2069) ||
         (point & 0xFFFE) == 0xFFFE;
}

bool can_be_shown(const Decoded& one) {
  return one.length > 0 && !is_control(one.point) && !misleads(one.point);
}

std::string hex_of(char byte) {
  const auto number = static_cast<std::uint8_t>(byte);
  return detail::to_hex(std::span(&number, 1));
}

std::string utf16_escape(std::uint32_t unit) {
  const std::array<std::uint8_t, 2> bytes{static_cast<std::uint8_t>(unit >> 8),
                                          static_cast<std::uint8_t>(unit)};
  return "\\u" + detail::to_hex(bytes);
}

// As bytes: how \u is read depends on the shell's locale.
std::string escaped(std::string_view name) {
  std::string text = "$'";
  while (!name.empty()) {
    const Decoded one = decode_utf8(name);
    const std::string_view bytes = name.substr(0, std::max<std::size_t>(one.length, 1));
    if (bytes == "'" || bytes == "\\") text += '\\';
    if (can_be_shown(one)) {
      text += bytes;
    } else {
      for (const char byte : bytes) text += "\\x" + hex_of(byte);
    }
    name.remove_prefix(bytes.size());
  }
  return text + "'";
}

bool is_plain(std::string_view name) {
  return name.find('\'') == std::string_view::npos && visible(name) == name;
}

}  // namespace

std::string visible(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const Decoded one = decode_utf8(text);
    const std::size_t length = std::max<std::size_t>(one.length, 1);
    if (can_be_shown(one)) {
      shown += text.substr(0, length);
    } else {
      shown += "\uFFFD";
    }
    text.remove_prefix(length);
  }
  return shown;
}

std::string in_quotes(std::string_view name) {
  return is_plain(name) ? "'" + std::string(name) + "'" : escaped(name);
}

std::string pasteable(std::string_view name) {
  return is_plain(name) ? std::string(name) : escaped(name);
}

std::string operands(std::initializer_list<std::string_view> names) {
  std::string text;
  bool dashes = false;
  for (const std::string_view name : names) {
    text += (text.empty() ? "" : " ") + in_quotes(name);
    dashes = dashes || name.starts_with('-');
  }
  return dashes ? "-- " + text : text;
}

std::string json_shown(std::string_view json) {
  std::string text;
  while (!json.empty()) {
    const Decoded one = decode_utf8(json);
    const std::string_view bytes = json.substr(0, std::max<std::size_t>(one.length, 1));
    if (bytes == "\n" || can_be_shown(one)) {
      text += bytes;
    } else if (one.point < 0x10000) {
      text += utf16_escape(one.point);
    } else {
      text += utf16_escape(0xD7C0 + (one.point >> 10)) + utf16_escape(0xDC00 + (one.point & 0x3FF));
    }
    json.remove_prefix(bytes.size());
  }
  return text;
}

std::string storable(std::string_view text) {
  constexpr std::size_t kMost = 8192;
  const std::string_view ellipsis = "\u2026";
  std::string kept;
  while (!text.empty()) {
    const Decoded one = decode_utf8(text);
    const std::string_view bytes = text.substr(0, std::max<std::size_t>(one.length, 1));
    const bool as_it_is = one.length > 0 && one.point != 0;
    const std::string piece = as_it_is ? std::string(bytes) : "\\x" + hex_of(bytes.front());
    if (kept.size() + piece.size() + ellipsis.size() > kMost) return kept.append(ellipsis);
    kept += piece;
    text.remove_prefix(bytes.size());
  }
  return kept;
}

}  // namespace leasehold::kit
