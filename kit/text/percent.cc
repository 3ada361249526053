#include "kit/text/percent.h"

#include <cstdint>
#include <span>

#include "leasehold/id.h"

namespace leasehold::kit {

bool is_unreserved(char byte) {
  const bool letter = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
  const bool digit = byte >= '0' && byte <= '9';
  return letter || digit || byte == '-' || byte == '.' || byte == '_' || byte == '~';
}

std::string percent_code(char byte) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  const auto number = static_cast<unsigned char>(byte);
  return {'%', kDigits[number >> 4], kDigits[number & 15]};
}

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      plain += text[i];
      continue;
    }
    std::uint8_t byte = 0;
    if (!detail::from_hex(text.substr(i + 1, 2), std::span(&byte, 1))) return std::nullopt;
    plain += static_cast<char>(byte);
    i += 2;
  }
  return plain;
}

}  // namespace leasehold::kit
