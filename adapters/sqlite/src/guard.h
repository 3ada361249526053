// Tables whose writers must have entered: the triggers that refuse the others.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "database.h"
#include "leasehold/fence_admin.h"
#include "schema.h"

namespace leasehold::sqlite {

const Part& guard_part();

// The name of a table of the user's, as its CREATE TABLE has it; `invalid` if there is none.
[[nodiscard]] Result<std::string> find_table(Connection connection, std::string_view table);
// The same for statements.
[[nodiscard]] Result<sql::Table> user_table(Connection connection, std::string_view table);

[[nodiscard]] Status add_guard(Connection connection, std::string_view table,
                               const ResourceName& resource);
[[nodiscard]] Status remove_guard(Connection connection, std::string_view table);
[[nodiscard]] Result<std::vector<GuardedTable>> read_guards(Connection connection);

// Takes back, before a commit, what entering has put into leasehold_inside.
[[nodiscard]] Status leave_guards(Connection connection);

// All guards and what they need, in the transaction that is open.
[[nodiscard]] Status drop_guards(Connection connection);

}  // namespace leasehold::sqlite
