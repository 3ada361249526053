#include "part.h"

#include <string_view>
#include <utility>

#include "server.h"

namespace leasehold::postgres {
namespace {

// The lock makes racing installers agree; the catalogue is read after it.
constexpr const char* kInstall = R"sql(
DO $do$ DECLARE
  there integer;
BEGIN
  PERFORM pg_catalog.pg_advisory_xact_lock(7810758531586156405);
  IF EXISTS (SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = '@SCHEMA') THEN
    EXECUTE 'SELECT @SCHEMA.version()' INTO there;
    IF there >= @VERSION THEN RETURN; END IF;
  END IF;
  -- Whoever uses the part waits behind an upgrade that waits for the longest transaction.
  PERFORM pg_catalog.set_config('lock_timeout', '10s', true);
  PERFORM pg_catalog.set_config('client_min_messages', 'warning', true);
  EXECUTE $ddl$ @DDL $ddl$;
  PERFORM @SCHEMA.commit_durably();
END $do$
)sql";

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

std::string installation(const Part& part) {
  const std::string ddl = std::string(part.ddl) + kPartFunctions;
  return replaced(replaced(replaced(kInstall, "@DDL", ddl), "@SCHEMA", part.schema), "@VERSION",
                  std::to_string(part.version));
}

Result<bool> is_installed(Session session, const Part& part) {
  auto rows = session.run(
      "SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = $1)", {part.schema});
  if (!rows) return fail(std::move(rows.error()));
  return rows->flag(0);
}

Result<std::int64_t> version_of(Session session, const Part& part) {
  auto version = session.run(std::string("SELECT ") + part.schema + ".version()", {});
  if (version) return version->number(0);
  if (is_missing(version.error())) version.error().message = not_installed(part);
  return fail(std::move(version.error()));
}

Status check_server(Session session, const Part& part) {
  auto rows = session.run(
      "SELECT pg_catalog.current_setting('server_version_num'),"
      " pg_catalog.current_setting('server_encoding')",
      {});
  if (!rows) return fail(std::move(rows.error()));
  if (auto ok = check_version(static_cast<int>(rows->number(0))); !ok) return ok;
  if (rows->text(1) == "UTF8") return {};
  return fail(ErrorCode::unsupported, "the database has the encoding " +
                                          std::string(rows->text(1)) + "; " + part.noun +
                                          " needs UTF8");
}

}  // namespace

Status install_part(Session session, const Part& part) {
  if (auto ok = session.check_outside(); !ok) return ok;
  if (auto ok = check_server(session, part); !ok) return ok;
  auto there = is_installed(session, part);
  if (!there) return fail(std::move(there.error()));
  if (*there) {
    auto version = version_of(session, part);
    if (!version) return fail(std::move(version.error()));
    if (*version >= part.version) return check_part(session, part);
  }
  auto made = session.run(installation(part), {});
  if (!made) {
    made.error().message = std::string("the schema ") + part.schema +
                           (*there ? " was not brought up to date: " : " was not made: ") +
                           made.error().message;
    return fail(std::move(made.error()));
  }
  return check_part(session, part);
}

Status check_part(Session session, const Part& part) {
  if (auto ok = session.check(); !ok) return ok;
  const auto version = version_of(session, part);
  if (!version) return fail(version.error());
  if (*version == part.version) return {};
  return fail(
      ErrorCode::unavailable,
      "the database has version " + std::to_string(*version) + " of the schema " + part.schema +
          "; this program works with version " + std::to_string(part.version) +
          (*version < part.version ? std::string("; bring it up to date ") + part.how : ""));
}

std::string not_installed(const Part& part) {
  return std::string(part.noun) + " is not installed in this database, or not whole; install it " +
         part.how;
}

Status remove_part(Session session, const Part& part) {
  if (auto ok = session.check_outside(); !ok) return ok;
  auto there = is_installed(session, part);
  if (!there) return fail(std::move(there.error()));
  if (!*there) return {};
  // Somebody's own schema of this name has no such function.
  if (auto ok = check_part(session, part); !ok) return ok;
  // CASCADE takes the triggers of the user's tables, and would say so in a notice.
  auto dropped = session.run(
      std::string(
          "DO $$ BEGIN PERFORM pg_catalog.set_config('client_min_messages', 'warning', true);"
          " DROP SCHEMA ") +
          part.schema + " CASCADE; END $$",
      {});
  if (!dropped) return fail(std::move(dropped.error()));
  return {};
}

}  // namespace leasehold::postgres
