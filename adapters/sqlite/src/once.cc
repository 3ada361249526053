#include "leasehold/sqlite/once.h"

#include <optional>

#include "kit/try.h"
#include "once_table.h"

namespace leasehold::sqlite {

Status install_once(sqlite3* db) {
  return install_once_table(Connection(db));
}

Result<Once> Once::open(sqlite3* db) {
  TRY(check_once_table(Connection(db)));
  return Once(db);
}

Result<Once::Begun> Once::begin(std::string_view key, std::string_view parameters,
                                const OnceOptions& options) const {
  const Connection connection(db_);
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

Status Once::store(std::string_view key, std::string_view parameters,
                   std::string_view result) const {
  return store_result(Connection(db_), key, parameters, result);
}

Result<std::int64_t> Once::forget_older_than(std::chrono::seconds age) const {
  const Connection connection(db_);
  auto transaction = TRY(detail::OwnedTransaction::begin(db_));
  auto remove = TRY(connection.prepare(
      "DELETE FROM main.leasehold_once WHERE stored_at < CAST(strftime('%s', 'now') AS INTEGER) - "
      "?1"));
  TRY(remove.bind(1, std::int64_t{age.count()}).run());
  const std::int64_t removed = connection.changes();
  TRY(transaction.commit());
  return removed;
}

}  // namespace leasehold::sqlite
