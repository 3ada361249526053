// RESP3 written out, as a server does it: the parser has no counterpart in the product.
#pragma once

#include <cstdio>
#include <string>

#include "leasehold/resp/value.h"

namespace leasehold::fuzz {

inline std::string written(const resp::Value& value) {
  using resp::Type;
  const auto line = [](char mark, const std::string& text) { return mark + text + "\r\n"; };
  const auto bulk = [&](char mark, const std::string& text) {
    return line(mark, std::to_string(text.size())) + text + "\r\n";
  };
  const auto list = [&](char mark, std::size_t count) {
    std::string text = line(mark, std::to_string(count));
    for (const resp::Value& item : value.items) text += written(item);
    return text;
  };
  switch (value.type) {
    case Type::null:
      return "_\r\n";
    case Type::simple:
      return line('+', value.text);
    case Type::error:
      return bulk('!', value.text);
    case Type::integer:
      return line(':', std::to_string(value.integer));
    case Type::bulk:
      return bulk('$', value.text);
    case Type::boolean:
      return line('#', value.integer == 1 ? "t" : "f");
    case Type::real: {
      char digits[40];
      std::snprintf(digits, sizeof digits, "%.17g", value.real);
      return line(',', digits);
    }
    case Type::big_number:
      return line('(', value.text);
    case Type::verbatim:
      return bulk('=', "txt:" + value.text);
    case Type::array:
      return list('*', value.items.size());
    case Type::map:
      return list('%', value.items.size() / 2);
    case Type::set:
      return list('~', value.items.size());
    case Type::push:
      return list('>', value.items.size());
  }
  return {};
}

}  // namespace leasehold::fuzz
