// Characters of a text that may be anything.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace leasehold::kit {

struct Decoded {
  std::uint32_t point = 0;
  std::size_t length = 0;  // 0: not UTF-8
};

// The first character; `text` is not empty.
inline Decoded decode_utf8(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return {};
  std::uint32_t point = lead & (0x7fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    point = point << 6 | (byte(i) & 0x3fu);
  }
  constexpr std::array<std::uint32_t, 5> smallest = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = point >= 0xd800 && point <= 0xdfff;
  if (point < smallest[length] || point > 0x10ffff || surrogate) return {};
  return {point, length};
}

inline bool is_control(std::uint32_t point) {
  // U+2028 and U+2029 break lines too, and a name must stay on the line it is printed in.
  return point < 0x20 || (point >= 0x7f && point < 0xa0) || point == 0x2028 || point == 0x2029;
}

}  // namespace leasehold::kit
