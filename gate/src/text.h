// Small questions about the bytes of HTTP.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace leasehold::gate {

constexpr char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

constexpr bool same_word(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (lower(a[i]) != lower(b[i])) return false;
  }
  return true;
}

// The same to services that take an underscore in a field's name for a dash.
constexpr bool looks_like_word(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const char left = a[i] == '_' ? '-' : lower(a[i]);
    const char right = b[i] == '_' ? '-' : lower(b[i]);
    if (left != right) return false;
  }
  return true;
}

constexpr bool starts_with_word(std::string_view text, std::string_view start) {
  return same_word(text.substr(0, start.size()), start);
}

constexpr int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char small = lower(c);
  return small >= 'a' && small <= 'f' ? small - 'a' + 10 : -1;
}

// A character of a method or a field name (RFC 9110, tchar).
bool is_token_char(char c);
bool is_token(std::string_view text);

// A field value: visible characters, spaces, tabs, and bytes above 127.
bool is_field_value(std::string_view text);

std::string_view without_spaces_around(std::string_view text);

// Decimal digits only, up to 2^63 - 1.
std::optional<std::uint64_t> parse_decimal(std::string_view digits);

// "%41" becomes "A"; nothing if a percent sign is not followed by two hexadecimal digits.
std::optional<std::string> percent_decoded(std::string_view text);
// Everything but letters, digits and -._~ as "%41".
std::string percent_encoded(std::string_view text);

// In quotes, escaped; bytes that are not UTF-8 become U+FFFD.
std::string json_string(std::string_view text);

}  // namespace leasehold::gate
