// What the fence's schema can do, called on somebody's connection.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "leasehold/fence_admin.h"
#include "session.h"

namespace leasehold::postgres {

[[nodiscard]] Status install_fence_schema(Session session);
[[nodiscard]] Status remove_fence_schema(Session session);
// `unavailable` if it is missing or has another version.
[[nodiscard]] Status check_fence_schema(Session session);
// `unavailable` if a trigger of the marks is gone or disabled; installing puts it right.
[[nodiscard]] Status check_marks_are_kept(Session session);

// One row with resource, lineage, token, request, refusals and claim.
[[nodiscard]] Result<FenceMark> mark_of(const Rows& rows, int row);
[[nodiscard]] Result<std::vector<FenceMark>> read_marks(Session session);
[[nodiscard]] Result<std::optional<FenceMark>> read_mark(Session session,
                                                         const ResourceName& resource);
[[nodiscard]] Status adopt_lineage(Session session, const ResourceName& resource,
                                   const Lineage& lineage, TokenNumber at_least);
[[nodiscard]] Status reset_mark(Session session, const ResourceName& resource);

// `invalid` inside a transaction: a count that is rolled back with it would not be an alarm.
[[nodiscard]] Status count_refusal(Session session, const ResourceName& resource);
// Counts `error` if it is a refusal, and returns it. The transaction must be rolled back by then.
[[nodiscard]] Error counted(Session session, const ResourceName& resource, Error error);

// The table as SQL names it, quoted where needed; `invalid` if there is none.
[[nodiscard]] Result<std::string> find_table(Session session, std::string_view table);
[[nodiscard]] Status add_guard(Session session, std::string_view table,
                               const ResourceName& resource);
[[nodiscard]] Status remove_guard(Session session, std::string_view table);
[[nodiscard]] Result<std::vector<GuardedTable>> read_guards(Session session);

}  // namespace leasehold::postgres
