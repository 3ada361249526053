#include "leasehold/sql/statement.h"

#include <charconv>

namespace leasehold::sql {

std::string quoted(std::string_view identifier) {
  std::string out = "\"";
  for (const char c : identifier) {
    out += c;
    if (c == '"') out += c;
  }
  return out + "\"";
}

std::int64_t Rows::number(int column, int row) const {
  std::int64_t number = 0;
  const std::string_view digits = text(column, row);
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

}  // namespace leasehold::sql
