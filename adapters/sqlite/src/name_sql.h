// The limits of a Name as SQL conditions, for triggers and constraints.
#pragma once

#include <string>

namespace leasehold::sqlite {

// length(), substr() and GLOB read a text only up to its first zero byte; comparing does not.
inline std::string not_text(const std::string& value) {
  return "typeof(" + value + ") <> 'text' OR instr(" + value + ", char(0)) > 0";
}

// The same limits as Name, as far as SQL can say them. U+FFFD is what GLOB reads for broken UTF-8.
inline std::string not_a_name(const std::string& text) {
  return "length(CAST(" + text + " AS BLOB)) NOT BETWEEN 1 AND 512 OR " + text +
         " GLOB '*[' || char(1) || '-' || char(31) || char(127) || '-' || char(159) ||"
         " char(8232) || char(8233) || ']*' OR (" +
         text + " GLOB '*' || char(65533) || '*' AND instr(" + text + ", char(65533)) = 0)";
}

}  // namespace leasehold::sqlite
