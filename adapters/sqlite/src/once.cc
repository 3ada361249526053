#include "leasehold/sqlite/once.h"

#include <optional>
#include <span>

#include "database.h"
#include "leasehold/detail/backoff.h"
#include "schema.h"

namespace leasehold::sqlite {
namespace {

constexpr Part kOnce = {"once", 1, "install it with install_once()"};

constexpr const char* kTable =
    "CREATE TABLE main.leasehold_once("
    "key TEXT NOT NULL PRIMARY KEY, parameters BLOB NOT NULL, result BLOB NOT NULL,"
    " stored_at INTEGER NOT NULL) WITHOUT ROWID";

std::span<const std::uint8_t> bytes(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

std::string string_of(std::span<const std::uint8_t> raw) {
  return {raw.begin(), raw.end()};
}

Result<std::optional<OnceResult>> look_up(Connection connection, const OnceKey& key,
                                          std::string_view parameters) {
  auto select =
      connection.prepare("SELECT parameters, result FROM main.leasehold_once WHERE key = ?1");
  if (!select) return fail(std::move(select.error()));
  auto row = select->bind(1, key.str()).step();
  if (!row) return fail(std::move(row.error()));
  if (!*row) return std::nullopt;
  if (string_of(select->blob(0)) != parameters) {
    return fail(leasehold::detail::other_parameters(key));
  }
  return OnceResult{string_of(select->blob(1)), true};
}

bool is_busy(sqlite3* db) {
  const int code = sqlite3_extended_errcode(db) & 0xff;
  return code == SQLITE_BUSY || code == SQLITE_LOCKED;
}

// Switches the connection's busy timeout off and on again, so that our own deadline holds and a
// stop request is heard. A handler that the user wrote reads as 0 here and is left alone: SQLite
// could not give it back.
class NoBusyTimeout {
 public:
  static Result<NoBusyTimeout> on(Connection connection) {
    auto pragma = connection.prepare("PRAGMA busy_timeout");
    if (!pragma) return fail(std::move(pragma.error()));
    auto row = pragma->step();
    if (!row) return fail(std::move(row.error()));
    return NoBusyTimeout(connection.handle(), static_cast<int>(pragma->integer(0)));
  }
  NoBusyTimeout(NoBusyTimeout&& other) noexcept
      : db_(other.db_), millis_(std::exchange(other.millis_, 0)) {}
  NoBusyTimeout& operator=(NoBusyTimeout&&) = delete;
  ~NoBusyTimeout() {
    if (millis_ > 0) sqlite3_busy_timeout(db_, millis_);
  }

 private:
  NoBusyTimeout(sqlite3* db, int millis) : db_(db), millis_(millis) {
    if (millis_ > 0) sqlite3_busy_timeout(db_, 0);
  }
  sqlite3* db_;
  int millis_;
};

constexpr const char* kWriting = "another process is writing, perhaps under the same key";

}  // namespace

Status install_once(sqlite3* db) {
  return install_part(Connection(db), kOnce, kTable);
}

Result<Once> Once::open(sqlite3* db) {
  if (auto ok = check_part(Connection(db), kOnce); !ok) return fail(std::move(ok.error()));
  return Once(db);
}

Result<Once::Begun> Once::begin(std::string_view key, std::string_view parameters,
                                const OnceOptions& options) const {
  const Connection connection(db_);
  const auto name = leasehold::detail::check_once(key, parameters);
  if (!name) return fail(name.error());
  if (connection.in_transaction()) {
    return fail(ErrorCode::invalid,
                "the connection has a transaction open already; this call begins its own");
  }
  const auto quiet = NoBusyTimeout::on(connection);
  if (!quiet) return fail(quiet.error());
  // SQLite tells nobody when the write lock becomes free, so this asks again.
  for (leasehold::detail::Backoff backoff(options.wait, options.stop);;) {
    auto early = look_up(connection, *name, parameters);
    if (early && *early) return std::move(**early);
    if (!early && !is_busy(db_)) return fail(std::move(early.error()));

    auto transaction = detail::OwnedTransaction::begin(db_);
    if (transaction) {
      // The first look took no lock: the key may have been stored since.
      auto stored = look_up(connection, *name, parameters);
      if (!stored) return fail(std::move(stored.error()));
      if (*stored) return std::move(**stored);
      return Begun(std::move(*transaction));
    }
    if (!is_busy(db_)) return fail(std::move(transaction.error()));
    if (!backoff.pause()) return fail(backoff.give_up(kWriting));
  }
}

Status Once::store(std::string_view key, std::string_view parameters,
                   std::string_view result) const {
  const Connection connection(db_);
  if (auto ok = leasehold::detail::check_once_result(result); !ok) return ok;
  if (!connection.in_transaction()) {
    return fail(ErrorCode::invalid,
                "the transaction was over before its work returned, so nothing was stored");
  }
  auto insert = connection.prepare(
      "INSERT INTO main.leasehold_once VALUES(?1, ?2, ?3, CAST(strftime('%s', 'now') AS INTEGER))");
  if (!insert) return fail(std::move(insert.error()));
  // An empty string_view may point nowhere, and SQLite would store that as NULL.
  const std::string own_parameters(parameters);
  const std::string own_result(result);
  return insert->bind(1, key).bind(2, bytes(own_parameters)).bind(3, bytes(own_result)).run();
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
