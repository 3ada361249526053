#include "leasehold/sql/statement.h"

#include "kit/text/number.h"

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
  std::string_view digits = text(column, row);
  return kit::take_number<std::int64_t>(digits).value_or(0);
}

}  // namespace leasehold::sql
