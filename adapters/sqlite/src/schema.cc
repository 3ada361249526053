#include "schema.h"

#include <optional>
#include <utility>

#include "kit/text/other_version.h"
#include "kit/try.h"
#include "store_file.h"

namespace leasehold::sqlite {
namespace {

Result<std::optional<std::int64_t>> installed_version(Connection connection, const Part& part) {
  auto tables = TRY(connection.prepare(
      "SELECT 1 FROM main.sqlite_master WHERE type = 'table' AND name = 'leasehold_version'"));
  auto there = TRY(tables.step());
  if (!there) return std::nullopt;

  auto versions =
      TRY(connection.prepare("SELECT version FROM main.leasehold_version WHERE part = ?1"));
  auto row = TRY(versions.bind(1, std::string_view(part.name)).step());
  if (!row) return std::nullopt;
  return versions.integer(0);
}

Status check_version(std::int64_t found, const Part& part) {
  if (found == part.version) return {};
  return fail(ErrorCode::unavailable,
              "the database has version " + std::to_string(found) + " of Leasehold's " + part.name +
                  ", and this program works with version " + std::to_string(part.version) +
                  kit::remedy_for_version(found, part.version, part.afresh));
}

Status create_part(Connection connection, const Part& part, const std::string& ddl) {
  auto ok = connection.exec(
      "CREATE TABLE IF NOT EXISTS main.leasehold_version("
      "part TEXT NOT NULL PRIMARY KEY, version INTEGER NOT NULL) WITHOUT ROWID");
  if (!ok) return ok;
  if (ok = connection.exec(ddl.c_str()); !ok) return ok;
  auto insert = TRY(connection.prepare("INSERT INTO main.leasehold_version VALUES(?1, ?2)"));
  return insert.bind(1, std::string_view(part.name)).bind(2, part.version).run();
}

Status drop_parts(Connection connection, std::initializer_list<Part> parts,
                  const std::function<Status()>& drop) {
  auto transaction = TRY(Transaction::begin(connection));
  bool any = false;
  for (const Part& part : parts) {
    const auto found = TRY(installed_version(connection, part));
    if (found > part.version) return check_version(*found, part);
    any = any || found;
  }
  if (!any) return {};
  TRY(drop());
  for (const Part& part : parts) {
    auto forget = TRY(connection.prepare("DELETE FROM main.leasehold_version WHERE part = ?1"));
    TRY(forget.bind(1, std::string_view(part.name)).run());
  }
  return transaction.commit();
}

}  // namespace

Status install_part(Connection connection, const Part& part, const std::string& ddl) {
  if (connection.in_transaction()) {
    return fail(ErrorCode::invalid, "installing needs a connection without an open transaction");
  }
  auto before = TRY(installed_version(connection, part));
  if (before) return check_version(*before, part);

  auto transaction = TRY(Transaction::begin(connection));
  auto found = TRY(installed_version(connection, part));
  if (found) return check_version(*found, part);
  if (is_lock_store(connection)) {
    return fail(ErrorCode::invalid,
                "this database is a file of locks; a fence, an outbox or idempotency keys go into "
                "the one that holds your data");
  }
  TRY(create_part(connection, part, ddl));
  return transaction.commit();
}

Result<bool> has_part(Connection connection, const Part& part) {
  auto found = TRY(installed_version(connection, part));
  if (!found) return false;
  TRY(check_version(*found, part));
  return true;
}

Status remove_parts(Connection connection, std::initializer_list<Part> parts,
                    const std::function<Status()>& drop) {
  if (connection.in_transaction()) {
    return fail(ErrorCode::invalid, "removing needs a connection without an open transaction");
  }
  return connection.durably([&] { return drop_parts(connection, parts, drop); });
}

Status check_part(Connection connection, const Part& part) {
  auto found = TRY(installed_version(connection, part));
  if (found) return check_version(*found, part);
  return fail(ErrorCode::unavailable, std::string("Leasehold's ") + part.name +
                                          " is not installed in this database; " + part.how);
}

}  // namespace leasehold::sqlite
