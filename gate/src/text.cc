#include "text.h"

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "kit/text/visible_text.h"

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

std::string json_text(const nlohmann::ordered_json& value) {
  return kit::json_shown(
      value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

std::string json_string(std::string_view text) {
  return json_text(text);
}

}  // namespace leasehold::gate
