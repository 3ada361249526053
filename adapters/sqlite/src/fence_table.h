// The fence's table, views and triggers, and what is read from them.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "database.h"
#include "fence/mark.h"
#include "leasehold/fence_admin.h"
#include "leasehold/sqlite/transaction.h"
#include "sql/marks.h"

namespace leasehold::sqlite {

[[nodiscard]] Status make_fence(Connection connection);
[[nodiscard]] Status check_fence(Connection connection);
// `unavailable` if a trigger of the marks is not as it was made; installing puts it right.
[[nodiscard]] Status check_marks_are_kept(Connection connection);
// With all marks and guards. Does nothing if it is not there.
[[nodiscard]] Status drop_fence(Connection connection);

[[nodiscard]] Result<std::vector<FenceMark>> read_marks(Connection connection);
[[nodiscard]] Result<std::optional<FenceMark>> read_mark(Connection connection,
                                                         const ResourceName& resource);

// What a token of that store is judged by.
struct MarkHere {
  fence::Mark mark;
  bool is_recent = false;  // somebody has entered within the hour
};
[[nodiscard]] Result<MarkHere> mark_here(Connection connection, const ResourceName& resource,
                                         const StoreId& store);

// `invalid` inside a transaction: a count that is rolled back with it would not be an alarm.
[[nodiscard]] Status count_refusal(Connection connection, const ResourceName& resource);

// begin() and enter() in it. A failure rolls back; a refusal is counted after that.
template <class Begin, class Enter>
[[nodiscard]] Result<detail::OwnedTransaction> begin_inside(Connection connection,
                                                            const ResourceName& resource,
                                                            const Begin& begin,
                                                            const Enter& enter) {
  auto entered = [&]() -> Result<detail::OwnedTransaction> {
    auto transaction = begin();
    if (!transaction) return transaction;
    if (Status ok = enter(); !ok) return fail(std::move(ok.error()));
    return transaction;
  }();
  if (entered) return entered;
  return fail(sql::counted(std::move(entered.error()),
                           [&] { return count_refusal(connection, resource); }));
}
template <class Enter>
[[nodiscard]] Result<detail::OwnedTransaction> begin_inside(Connection connection,
                                                            const ResourceName& resource,
                                                            const Enter& enter) {
  const auto begin = [&] { return detail::OwnedTransaction::begin(connection.handle()); };
  return begin_inside(connection, resource, begin, enter);
}

[[nodiscard]] Status adopt_lineage(Connection connection, const ResourceName& resource,
                                   const Lineage& lineage, TokenNumber at_least);

[[nodiscard]] Status reset_mark(Connection connection, const ResourceName& resource);

// What a transaction had that did not have the write lock, before it entered. SQLite does not wait
// for a writer then.
enum class Snapshot {
  none,
  of_user,
  of_mark,  // enter_to_read() has compared
};

// The error of a statement on one of the fence's views that has just failed on `connection`:
// `fenced_out` and `invalid` as the trigger decided, else what SQLite reports.
[[nodiscard]] Error entry_error(Connection connection, Error error, Snapshot before);
// `none` or `of_user`.
Snapshot snapshot_of(Connection connection);

}  // namespace leasehold::sqlite
