#include "kit/text/visible_text.h"

#include <algorithm>
#include <cstdint>
#include <span>

#include "kit/text/utf8.h"
#include "leasehold/id.h"

namespace leasehold::kit {
namespace {

// What turns the direction of writing, so that a line reads as another one, and what no document
// may contain.
bool misleads(std::uint32_t point) {
  return (point >= 0x202A && point <= 0x202E) || (point >= 0x2066 && point <= 0x2069) ||
         (point & 0xFFFE) == 0xFFFE;
}

std::string hex_of(char byte) {
  const auto number = static_cast<std::uint8_t>(byte);
  return detail::to_hex(std::span(&number, 1));
}

}  // namespace

std::string visible(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const Decoded one = decode_utf8(text);
    const std::size_t length = std::max<std::size_t>(one.length, 1);
    if (one.length == 0 || is_control(one.point) || misleads(one.point)) {
      shown += "\uFFFD";
    } else {
      shown += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  return shown;
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
