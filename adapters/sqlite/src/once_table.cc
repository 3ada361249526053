#include "once_table.h"

#include <span>
#include <utility>

#include "kit/try.h"
#include "schema.h"
#include "waiting/backoff.h"

namespace leasehold::sqlite {
namespace {

constexpr Part kOnce = {"once", 1, "install it with `leasehold once install` or install_once()",
                        "DROP TABLE leasehold_once; DELETE FROM leasehold_version WHERE part = "
                        "'once'; and install it; it forgets all results, so that a repeat works "
                        "again"};

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

bool is_busy(sqlite3* db) {
  const int code = sqlite3_extended_errcode(db) & 0xff;
  return code == SQLITE_BUSY || code == SQLITE_LOCKED;
}

// Switches the connection's busy timeout off and on again, so that our own deadline holds and a
// stop request is heard. A handler that the user wrote reads as 0 here and is left alone: SQLite
// could not give it back.
class [[nodiscard]] NoBusyTimeout {
 public:
  static Result<NoBusyTimeout> on(Connection connection) {
    auto pragma = TRY(connection.prepare("PRAGMA busy_timeout"));
    TRY(pragma.step());
    return NoBusyTimeout(connection.handle(), static_cast<int>(pragma.integer(0)));
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

Status make_once(Connection connection) {
  return connection.durably([&] { return install_part(connection, kOnce, kTable); });
}

Status check_once(Connection connection) {
  return check_part(connection, kOnce);
}

Result<std::optional<OnceResult>> find_result(Connection connection, const OnceKey& key,
                                              std::string_view parameters) {
  auto select =
      TRY(connection.prepare("SELECT parameters, result FROM main.leasehold_once WHERE key = ?1"));
  auto row = TRY(select.bind(1, key.str()).step());
  if (!row) return std::nullopt;
  if (string_of(select.blob(0)) != parameters) {
    return fail(leasehold::detail::other_parameters(key));
  }
  return OnceResult{string_of(select.blob(1)), true};
}

Result<OnceBegun> begin_in_time(Connection connection, const OnceOptions& options,
                                const EarlyLook& early) {
  if (connection.in_transaction()) {
    return fail(ErrorCode::invalid,
                "the connection has a transaction open already; this call begins its own");
  }
  const auto quiet = TRY(NoBusyTimeout::on(connection));
  // SQLite tells nobody when the write lock becomes free, so this asks again.
  for (waiting::Backoff backoff(options.wait, options.stop);;) {
    auto known = early();
    if (known && *known) return std::move(**known);
    if (!known && !is_busy(connection.handle())) return fail(std::move(known.error()));

    auto transaction = detail::OwnedTransaction::begin(connection.handle());
    if (transaction) return OnceBegun(std::move(*transaction));
    if (!is_busy(connection.handle())) return fail(std::move(transaction.error()));
    if (!backoff.pause()) return fail(backoff.give_up(kWriting));
  }
}

Status store_result(Connection connection, std::string_view key, std::string_view parameters,
                    std::string_view result) {
  TRY(leasehold::detail::check_once_result(result));
  if (!connection.in_transaction()) {
    return fail(ErrorCode::invalid,
                "the transaction was over before its work returned, so nothing was stored");
  }
  auto insert =
      TRY(connection.prepare("INSERT INTO main.leasehold_once VALUES(?1, ?2, ?3, "
                             "CAST(strftime('%s', 'now') AS INTEGER))"));
  // An empty string_view may point nowhere, and SQLite would store that as NULL.
  const std::string own_parameters(parameters);
  const std::string own_result(result);
  return insert.bind(1, key).bind(2, bytes(own_parameters)).bind(3, bytes(own_result)).run();
}

}  // namespace leasehold::sqlite
