// The fence's table, views and triggers, and what is read from them.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "database.h"
#include "fence/refusal.h"
#include "leasehold/fence_admin.h"

namespace leasehold::sqlite {

[[nodiscard]] Status install_fence_table(Connection connection);
[[nodiscard]] Status check_fence_table(Connection connection);
// `unavailable` if a trigger of the marks is not as it was made; installing puts it right.
[[nodiscard]] Status check_marks_are_kept(Connection connection);
// With all marks and guards. Does nothing if it is not there.
[[nodiscard]] Status remove_fence_table(Connection connection);

// The row that `statement` stands on: resource, lineage, token, request, refusals and claim.
[[nodiscard]] Result<FenceMark> mark_of(const Statement& statement);
[[nodiscard]] Result<std::vector<FenceMark>> read_marks(Connection connection);
[[nodiscard]] Result<std::optional<FenceMark>> read_mark(Connection connection,
                                                         const ResourceName& resource);

using fence::Threshold;
[[nodiscard]] Result<std::optional<Threshold>> read_threshold(Connection connection,
                                                              const ResourceName& resource);

// `invalid` inside a transaction: a count that is rolled back with it would not be an alarm.
[[nodiscard]] Status count_refusal(Connection connection, const ResourceName& resource);

// Counts `error` if it is a refusal, and returns it. The transaction must be rolled back by then.
[[nodiscard]] Error counted(Connection connection, const ResourceName& resource, Error error);

[[nodiscard]] Status adopt_lineage(Connection connection, const ResourceName& resource,
                                   const Lineage& lineage, TokenNumber at_least);

[[nodiscard]] Status reset_mark(Connection connection, const ResourceName& resource);

// The error of a statement on one of the fence's views that has just failed on `connection`:
// `fenced_out` and `invalid` as the trigger decided, else what SQLite reports. `had_read`: the
// transaction had a snapshot before that statement.
[[nodiscard]] Error entry_error(Connection connection, Error error, bool had_read);
bool has_snapshot(Connection connection);

}  // namespace leasehold::sqlite
