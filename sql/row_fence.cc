#include "leasehold/sql/row_fence.h"

#include <algorithm>
#include <cctype>

namespace leasehold::sql {
namespace {

bool is_of_the_mark(std::string column) {
  std::transform(column.begin(), column.end(), column.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return column == "fence" || column == "fence_lineage" || column == "fence_request" ||
         column == "fence_refused";
}

}  // namespace

std::string RowFenceSql::quoted(const std::string& identifier) {
  std::string out = "\"";
  for (const char c : identifier) {
    out += c;
    if (c == '"') out += c;
  }
  return out + "\"";
}

// A number without a lineage was written by hand, as `fence = 33`: it keeps its order.
std::string RowFenceSql::admits(bool single) const {
  return "(fence IS NULL OR " + compared("fence", "<=", 2) + ") AND (fence_lineage IS NULL OR " +
         compared("fence_lineage", "=", 3) + ") AND (" + compared("fence", "<", 2) +
         " OR fence_request IS NULL OR (" + (single ? "false" : "true") + " AND " +
         compared("fence_request", "=", 4) + "))";
}

std::string RowFenceSql::update(bool single, const std::string& more) const {
  return "UPDATE " + table_ + " SET fence = " + parameter(2) + ", fence_lineage = " + parameter(3) +
         ", fence_request = " + parameter(4) + more + " WHERE " + is_key() + " AND " +
         admits(single);
}

Result<std::string> RowFenceSql::write(const std::vector<std::string>& columns, bool single) const {
  std::string more;
  int next = 5;
  for (const std::string& column : columns) {
    if (is_of_the_mark(column)) {
      return fail(ErrorCode::invalid,
                  "column '" + column + "' is part of the mark, which only the fence sets");
    }
    more += ", " + quoted(column) + " = " + parameter(next++);
  }
  return update(single, more);
}

std::string RowFenceSql::enter(const std::vector<std::string>& columns, bool single) const {
  std::string wanted;
  for (const std::string& column : columns) wanted += ", " + known_as_ + "." + quoted(column);
  return update(single, "") + " RETURNING 1" + wanted;
}

std::string RowFenceSql::count_refusal(bool single) const {
  return "UPDATE " + table_ + " SET fence_refused = " + form_.infix("fence_refused", "+", "1") +
         " WHERE " + is_key() + " AND NOT coalesce(" + admits(single) +
         ", false) RETURNING fence, fence_lineage,"
         " fence_lineage IS NOT NULL AND fence_request IS NULL, fence_request";
}

std::string RowFenceSql::marks_where(const std::string& where) const {
  return "SELECT CAST(" + key_ +
         " AS text), fence_lineage, CASE WHEN fence_request IS NOT NULL THEN fence END,"
         " fence_request, fence_refused, NULL, fence FROM " +
         table_ + where + " ORDER BY 1";
}

std::string RowFenceSql::marks() const {
  return marks_where(" WHERE fence IS NOT NULL OR fence_lineage IS NOT NULL OR " +
                     form_.infix("fence_refused", ">", "0"));
}

std::string RowFenceSql::adopt() const {
  const std::string number = parameter(2);
  const std::string lineage = parameter(3);
  const std::string same_lineage = compared("fence_lineage", "=", 3);
  return "UPDATE " + table_ + " SET fence_request = CASE WHEN " + same_lineage + " AND " +
         compared("fence", "=", 2) + " THEN fence_request END, fence = " + number +
         ", fence_lineage = " + lineage + " WHERE " + is_key() + " AND NOT coalesce(" +
         same_lineage + " AND " + compared("fence", ">", 2) + ", false) RETURNING 1";
}

}  // namespace leasehold::sql
