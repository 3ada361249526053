// Parts of Leasehold that live in a database of the user's own, each with its version.
#pragma once

#include <string>

#include "database.h"

namespace leasehold::sqlite {

struct Part {
  const char* name;      // the key in table leasehold_version
  std::int64_t version;  // the only one this program works with
  const char* how;       // ends the sentence about a part that is missing
};

// Runs `ddl` unless the part is there. All or nothing. `invalid` inside a transaction,
// `unavailable` if another version is there.
[[nodiscard]] Status install_part(Connection connection, const Part& part, const std::string& ddl);

// `unavailable` if the part is missing or has another version.
[[nodiscard]] Status check_part(Connection connection, const Part& part);

}  // namespace leasehold::sqlite
