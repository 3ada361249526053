#include "leasehold/sqlite/once.h"

#include <optional>

#include "fence_table.h"
#include "kit/try.h"
#include "once_table.h"

namespace leasehold::sqlite {

Status install_once(sqlite3* db) {
  return make_once(Connection(db));
}

Status Driver::check_once(sqlite3* db) {
  return sqlite::check_once(Connection(db));
}

Result<Driver::OnceBegun> Driver::begin_once(sqlite3* db, std::string_view key,
                                             std::string_view parameters,
                                             const OnceOptions& options) {
  const Connection connection(db);
  const auto name = TRY(leasehold::detail::check_once(key, parameters));
  const auto look = [&] {
    auto found = find_result(connection, name, parameters);
    if (!found || !*found) return found;
    if (auto ok = connection.sync_what_was_read(); !ok) found = fail(std::move(ok.error()));
    return found;
  };
  auto begun = begin_in_time(connection, options, look);
  if (!begun || std::holds_alternative<OnceResult>(*begun)) return begun;
  // The first look took no lock: the key may have been stored since.
  auto stored = TRY(look());
  if (stored) return std::move(*stored);
  return begun;
}

// Nothing is told to a stale holder, so that there is no look before the fence was entered.
Result<Driver::OnceBegun> Driver::begin_fenced_once(sqlite3* db, const ResourceName& resource,
                                                    const Token& token, std::string_view key,
                                                    std::string_view parameters,
                                                    const OnceOptions& options) {
  const Connection connection(db);
  const auto name = TRY(leasehold::detail::check_once(key, parameters));
  const auto no_look = [] { return Result<std::optional<OnceResult>>(std::nullopt); };
  const auto begin = [&]() -> Result<Transaction> {
    auto begun = TRY(begin_in_time(connection, options, no_look));
    return std::get<Transaction>(std::move(begun));
  };
  auto entered = begin_inside(connection, resource, begin,
                              [&] { return enter(db, resource, token, Entry::repeatable); });
  if (!entered) return fail(std::move(entered.error()));
  auto stored = TRY(find_result(connection, name, parameters));
  if (!stored) return std::move(*entered);
  TRY(entered->commit());
  return std::move(*stored);
}

Status Driver::store_result(sqlite3* db, std::string_view key, std::string_view parameters,
                            std::string_view result) {
  return sqlite::store_result(Connection(db), key, parameters, result);
}

Result<std::int64_t> Driver::forget_results(sqlite3* db, std::chrono::seconds age) {
  auto transaction = TRY(Transaction::begin(db));
  auto remove = TRY(Connection(db).prepare(
      "DELETE FROM main.leasehold_once WHERE stored_at < CAST(strftime('%s', 'now') AS INTEGER) - "
      "?1"));
  TRY(remove.bind(1, std::int64_t{age.count()}).run());
  const std::int64_t removed = Connection(db).changes();
  TRY(transaction.commit());
  return removed;
}

}  // namespace leasehold::sqlite
