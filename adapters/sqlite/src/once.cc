#include "leasehold/sqlite/once.h"

#include <optional>

#include "once_table.h"

namespace leasehold::sqlite {

Status install_once(sqlite3* db) {
  return install_once_table(Connection(db));
}

Result<Once> Once::open(sqlite3* db) {
  if (auto ok = check_once_table(Connection(db)); !ok) return fail(std::move(ok.error()));
  return Once(db);
}

Result<Once::Begun> Once::begin(std::string_view key, std::string_view parameters,
                                const OnceOptions& options) const {
  const Connection connection(db_);
  const auto name = leasehold::detail::check_once(key, parameters);
  if (!name) return fail(name.error());
  const auto look = [&] {
    auto found = find_result(connection, *name, parameters);
    if (!found || !*found) return found;
    if (auto ok = connection.sync_what_was_read(); !ok) found = fail(std::move(ok.error()));
    return found;
  };
  auto begun = begin_in_time(connection, options, look);
  if (!begun || std::holds_alternative<OnceResult>(*begun)) return begun;
  // The first look took no lock: the key may have been stored since.
  auto stored = look();
  if (!stored) return fail(std::move(stored.error()));
  if (*stored) return std::move(**stored);
  return begun;
}

Status Once::store(std::string_view key, std::string_view parameters,
                   std::string_view result) const {
  return store_result(Connection(db_), key, parameters, result);
}

Result<std::int64_t> Once::forget_older_than(std::chrono::seconds age) const {
  const Connection connection(db_);
  auto transaction = detail::OwnedTransaction::begin(db_);
  if (!transaction) return fail(std::move(transaction.error()));
  auto remove = connection.prepare(
      "DELETE FROM main.leasehold_once WHERE stored_at < CAST(strftime('%s', 'now') AS INTEGER) - "
      "?1");
  if (!remove) return fail(std::move(remove.error()));
  if (auto ok = remove->bind(1, std::int64_t{age.count()}).run(); !ok) {
    return fail(std::move(ok.error()));
  }
  const std::int64_t removed = connection.changes();
  if (auto ok = transaction->commit(); !ok) return fail(std::move(ok.error()));
  return removed;
}

}  // namespace leasehold::sqlite
