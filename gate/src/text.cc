#include "text.h"

#include <algorithm>
#include <array>
#include <limits>

#include "leasehold/name.h"

namespace leasehold::gate {
namespace {

constexpr bool is_alphanumeric(char c) {
  return (c >= '0' && c <= '9') || (lower(c) >= 'a' && lower(c) <= 'z');
}

constexpr auto make_token_chars() {
  std::array<bool, 256> table{};
  for (int c = 0; c < 128; ++c) table[static_cast<std::size_t>(c)] = is_alphanumeric(char(c));
  for (const char c : std::string_view("!#$%&'*+-.^_`|~"))
    table[static_cast<std::uint8_t>(c)] = true;
  return table;
}

}  // namespace

bool is_token_char(char c) {
  static constexpr auto table = make_token_chars();
  return table[static_cast<std::uint8_t>(c)];
}

bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_token_char);
}

bool is_field_value(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<std::uint8_t>(c);
    return (byte >= 0x20 && byte != 0x7f) || c == '\t';
  });
}

std::string_view without_spaces_around(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::optional<std::uint64_t> parse_decimal(std::string_view digits) {
  constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();
  if (digits.empty()) return std::nullopt;
  std::uint64_t value = 0;
  for (const char c : digits) {
    if (c < '0' || c > '9') return std::nullopt;
    const auto digit = static_cast<std::uint64_t>(c - '0');
    if (value > (most - digit) / 10) return std::nullopt;
    value = value * 10 + digit;
  }
  return value;
}

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const int high = hex_value(text[i + 1]);
    const int low = hex_value(text[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

std::string percent_encoded(std::string_view text) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    if (is_alphanumeric(c) || std::string_view("-._~").find(c) != std::string_view::npos) {
      out += c;
      continue;
    }
    const auto byte = static_cast<std::uint8_t>(c);
    out += '%';
    out += digits[byte >> 4];
    out += digits[byte & 15];
  }
  return out;
}

std::string json_string(std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out = "\"";
  while (!text.empty()) {
    const std::size_t length = detail::utf8_length(text);
    const auto byte = static_cast<std::uint8_t>(text[0]);
    if (length == 0) {
      out += "\\ufffd";
    } else if (byte < 0x20 || byte == 0x7f) {
      out += "\\u00";
      out += digits[byte >> 4];
      out += digits[byte & 15];
    } else {
      if (text[0] == '"' || text[0] == '\\') out += '\\';
      out += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out + '"';
}

}  // namespace leasehold::gate
