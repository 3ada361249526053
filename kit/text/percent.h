// "%2F" for a byte that must not stand where a text is to stand.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace leasehold::kit {

// Letters, digits and -._~ (RFC 3986).
bool is_unreserved(char byte);

// A percent sign and two digits, in capitals.
std::string percent_code(char byte);

// Every byte but those that stay as they are becomes its code. A percent sign must not stay.
template <class Stays = bool (*)(char)>
std::string percent_encoded(std::string_view text, const Stays& stays = is_unreserved) {
  std::string encoded;
  encoded.reserve(text.size());
  for (const char byte : text) encoded += stays(byte) ? std::string(1, byte) : percent_code(byte);
  return encoded;
}

// Nothing if a percent sign is not followed by two hexadecimal digits.
std::optional<std::string> percent_decoded(std::string_view text);

// Nothing unless `encode` would have written it so: then no two texts stand for one.
template <class Encode>
std::optional<std::string> percent_decoded_as(std::string_view text, const Encode& encode) {
  auto plain = percent_decoded(text);
  if (plain && encode(*plain) != text) plain.reset();
  return plain;
}

}  // namespace leasehold::kit
