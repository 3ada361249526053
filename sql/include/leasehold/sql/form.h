// How a database writes what several of them know.
#pragma once

#include <string>
#include <string_view>

namespace leasehold::sql {

struct SqlForm {
  char sign;  // begins a parameter: '$' or '?'
  // Where operators have schemas, one that somebody else has put into the search_path may fit the
  // types better than the database's own: "OPERATOR(schema." and ")".
  const char* before_operator = "";
  const char* behind_operator = "";

  std::string parameter(int number) const { return sign + std::to_string(number); }
  // `left` and `right` with the operator between.
  std::string infix(const std::string& left, const char* sql_operator,
                    const std::string& right) const {
    return left + " " + before_operator + sql_operator + behind_operator + " " + right;
  }
};

// As a name in SQL: "id".
std::string quoted(std::string_view identifier);

}  // namespace leasehold::sql
