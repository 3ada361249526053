// What a failure may say, and no text of a database can hold as it is.
#pragma once

#include <string>
#include <vector>

namespace leasehold::testing {

inline std::vector<std::string> hostile_failure_texts() {
  return {"caf\xe9",
          std::string("zero\0byte", 9),
          "cut \xe2\x82",
          "surrogate \xed\xa0\x80",
          "",
          std::string(std::size_t(2) << 20, 'x'),
          std::string(std::size_t(2) << 20, '\xff')};
}

}  // namespace leasehold::testing
