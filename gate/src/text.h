// Small questions about the bytes of HTTP.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "kit/text/number.h"
#include "kit/text/percent.h"

namespace leasehold::gate {

using kit::percent_decoded;
using kit::percent_encoded;

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

// A character of a method or a field name (RFC 9110, tchar).
bool is_token_char(char c);
bool is_token(std::string_view text);

// A field value: visible characters, spaces, tabs, and bytes above 127.
bool is_field_value(std::string_view text);

std::string_view without_spaces_around(std::string_view text);

// On one line; bytes that are not UTF-8 become U+FFFD.
std::string json_text(const nlohmann::ordered_json& value);
std::string json_string(std::string_view text);

}  // namespace leasehold::gate
