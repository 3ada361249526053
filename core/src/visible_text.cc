#include "leasehold/detail/visible_text.h"

#include <algorithm>

#include "utf8.h"

namespace leasehold::detail {
namespace {

// What turns the direction of writing, so that a line reads as another one, and what no document
// may contain.
bool misleads(std::uint32_t point) {
  return (point >= 0x202A && point <= 0x202E) || (point >= 0x2066 && point <= 0x2069) ||
         (point & 0xFFFE) == 0xFFFE;
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

}  // namespace leasehold::detail
