// Numbers as texts of others have them.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>
#include <type_traits>

namespace leasehold::kit {

// Takes the number at the beginning of `text` off: digits, after a '-' if the type has a sign. No
// '+', no spaces. Nothing, and nothing taken, if there is none or the type cannot hold it.
template <class Number>
std::optional<Number> take_number(std::string_view& text, int base = 10) {
  Number number{};
  std::from_chars_result read{};
  if constexpr (std::is_floating_point_v<Number>) {
    read = std::from_chars(text.data(), text.data() + text.size(), number);
  } else {
    read = std::from_chars(text.data(), text.data() + text.size(), number, base);
  }
  if (read.ec != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(read.ptr - text.data()));
  return number;
}

// The same for the whole of a text.
template <class Number>
std::optional<Number> number_in(std::string_view text, int base = 10) {
  const auto number = take_number<Number>(text, base);
  return text.empty() ? number : std::nullopt;
}

// The same without any sign.
template <class Number>
std::optional<Number> digits_in(std::string_view text) {
  return text.starts_with('-') ? std::nullopt : number_in<Number>(text);
}

}  // namespace leasehold::kit
