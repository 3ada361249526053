// What the fence's schema can do, called on somebody's connection.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "leasehold/fence_admin.h"
#include "leasehold/postgres/transaction.h"
#include "leasehold/sql/statement.h"
#include "session.h"

namespace leasehold::postgres {

[[nodiscard]] Status make_fence(Session session);
[[nodiscard]] Status drop_fence(Session session);
// `unavailable` if it is missing or has another version.
[[nodiscard]] Status check_fence(Session session);
// `unavailable` if a trigger of the marks is gone or disabled; installing puts it right.
[[nodiscard]] Status check_marks_are_kept(Session session);

[[nodiscard]] Result<std::vector<FenceMark>> read_marks(Session session);
[[nodiscard]] Result<std::optional<FenceMark>> read_mark(Session session,
                                                         const ResourceName& resource);
[[nodiscard]] Status adopt_lineage(Session session, const ResourceName& resource,
                                   const Lineage& lineage, TokenNumber at_least);
[[nodiscard]] Status reset_mark(Session session, const ResourceName& resource);

// `invalid` inside a transaction: a count that is rolled back with it would not be an alarm.
[[nodiscard]] Status count_refusal(Session session, const ResourceName& resource);
// The error of an entry that is rolled back by now: counted, if it is a refusal.
[[nodiscard]] Error counted(pg_conn* connection, const ResourceName& resource, Error error);
// The transaction that the first statement of an entry has begun, with its id in column 1. If it
// failed it is rolled back, and a refusal is counted.
[[nodiscard]] Result<OwnedTransaction> entered(pg_conn* connection, const ResourceName& resource,
                                               Result<Rows> rows);

// The table as SQL names it, quoted where needed; `invalid` if there is none.
[[nodiscard]] Result<std::string> find_table(Session session, std::string_view table);
// The same for statements, on a connection that can be used.
[[nodiscard]] Result<sql::Table> user_table(Session session, std::string_view table);
[[nodiscard]] Status add_guard(Session session, std::string_view table,
                               const ResourceName& resource);
[[nodiscard]] Status remove_guard(Session session, std::string_view table);
[[nodiscard]] Result<std::vector<GuardedTable>> read_guards(Session session);

}  // namespace leasehold::postgres
