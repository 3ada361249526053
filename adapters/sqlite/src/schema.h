// Parts of Leasehold that live in a database of the user's own, each with its version.
#pragma once

#include <functional>
#include <initializer_list>
#include <string>

#include "database.h"

namespace leasehold::sqlite {

struct Part {
  const char* name;      // the key in table leasehold_version
  std::int64_t version;  // the only one this program works with
  const char* how;       // ends the sentence about a part that is missing
  const char* afresh;    // ends that about one of an earlier version, with what is lost
};

// Runs `ddl` unless the part is there. All or nothing. `invalid` inside a transaction
// and for a file of locks, `unavailable` if another version is there, with what to do about it.
[[nodiscard]] Status install_part(Connection connection, const Part& part, const std::string& ddl);

// Whether the part is there. `unavailable` if it has another version.
[[nodiscard]] Result<bool> has_part(Connection connection, const Part& part);

// Runs `drop` and forgets the parts, unless none of them is there: also those of an earlier
// version, to begin afresh. All or nothing. `invalid` inside a transaction, `unavailable` if one
// has a later version.
[[nodiscard]] Status remove_parts(Connection connection, std::initializer_list<Part> parts,
                                  const std::function<Status()>& drop);

// `unavailable` if the part is missing or has another version.
[[nodiscard]] Status check_part(Connection connection, const Part& part);

}  // namespace leasehold::sqlite
