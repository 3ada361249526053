#include "part.h"

#include <string_view>
#include <utility>

#include "kit/text/other_version.h"
#include "kit/try.h"
#include "schema.h"
#include "schema_owner.h"
#include "server.h"

namespace leasehold::postgres {
namespace {

// What version() would say, without calling it: the schema may be a stranger's.
constexpr const char* kVersion = R"sql(
(SELECT pg_catalog.substring(p.prosrc, '^SELECT ([0-9]{1,9})$') FROM pg_catalog.pg_proc p
 WHERE p.proname OPERATOR(pg_catalog.=) 'version' AND p.pronargs OPERATOR(pg_catalog.=) 0::smallint
   AND p.pronamespace OPERATOR(pg_catalog.=) n.oid)
)sql";

// The lock makes racing installers agree; the catalogue is read after it, and so must the snapshot
// be taken.
constexpr const char* kInstall = R"sql(
DO $do$ DECLARE
  there text;
BEGIN
  @TRUSTED
  PERFORM pg_advisory_xact_lock(7810758531586156405);
  IF EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = '@N') THEN
    IF @STRANGER IS NOT NULL THEN RAISE insufficient_privilege; END IF;
    SELECT @VERSION_OF INTO there FROM pg_namespace n WHERE n.nspname = '@N';
    IF there IS NULL THEN RAISE undefined_function; END IF;
    RETURN;
  END IF;
  CREATE SCHEMA @S;
  PERFORM set_config('client_min_messages', 'warning', true);
  EXECUTE $ddl$ @DDL $ddl$;
  PERFORM @S.commit_durably();
END $do$
)sql";

std::string installation(const Part& part) {
  std::string sql = replaced(kInstall, "@TRUSTED", kTrustedNames);
  sql = replaced(std::move(sql), "@STRANGER", stranger_in_schema());
  sql = replaced(std::move(sql), "@VERSION_OF", kVersion);
  sql = replaced(std::move(sql), "@DDL", std::string(part.ddl) + kPartFunctions);
  sql = replaced(std::move(sql), "@VERSION", std::to_string(part.version));
  return in_schema(sql, part.schema);
}

Result<bool> is_installed(Session session, const Part& part) {
  auto rows = TRY(session.run(in_schema("SELECT n.oid, " + stranger_in_schema() +
                                            " FROM pg_catalog.pg_namespace n"
                                            " WHERE n.nspname OPERATOR(pg_catalog.=) '@N'",
                                        part.schema),
                              {}));
  if (rows.count() == 0) return false;
  if (!rows.is_null(1)) return fail(belongs_to(part.schema, rows.text(1)));
  return true;
}

Result<std::int64_t> version_of(Session session, const Part& part) {
  auto rows = TRY(session.run(
      in_schema(std::string("SELECT ") + kStrangerToSuperuser +
                    ", pg_catalog.has_schema_privilege(n.oid, 'USAGE'), " + kVersion +
                    " FROM pg_catalog.pg_namespace n WHERE n.nspname OPERATOR(pg_catalog.=) '@N'",
                part.schema),
      {}));
  const bool there = rows.count() > 0;
  if (there && !rows.is_null(0)) return fail(belongs_to(part.schema, rows.text(0)));
  if (!there || rows.is_null(2)) return fail(ErrorCode::unavailable, not_installed(part));
  if (!rows.flag(1)) return fail(forbidden());
  return rows.number(2);
}

Status check_server(Session session, const Part& part) {
  auto rows =
      TRY(session.run("SELECT pg_catalog.current_setting('server_version_num'),"
                      " pg_catalog.current_setting('server_encoding')",
                      {}));
  TRY(check_version(static_cast<int>(rows.number(0))));
  if (rows.text(1) == "UTF8") return {};
  return fail(ErrorCode::unsupported, "the database has the encoding " + std::string(rows.text(1)) +
                                          "; " + part.noun + " needs UTF8");
}

}  // namespace

Status install_part(Session session, const Part& part) {
  TRY(session.check_outside());
  TRY(check_server(session, part));
  auto there = TRY(is_installed(session, part));
  if (there) return check_part(session, part);
  auto made = session.run_read_committed(installation(part));
  if (!made) {
    made.error().message =
        std::string("the schema ") + part.schema + " was not made: " + made.error().message;
    return fail(std::move(made.error()));
  }
  return check_part(session, part);
}

Status check_part(Session session, const Part& part) {
  TRY(session.check());
  const auto version = TRY(version_of(session, part));
  if (version == part.version) return {};
  return fail(
      ErrorCode::unavailable,
      "the database has version " + std::to_string(version) + " of the schema " + part.schema +
          ", and this program works with version " + std::to_string(part.version) +
          kit::remedy_for_version(version, part.version,
                                  std::string("stop all programs that use it, DROP SCHEMA ") +
                                      part.schema + " CASCADE, and install it " + part.how +
                                      "; it forgets " + part.holds));
}

std::string not_installed(const Part& part) {
  return std::string(part.noun) + " is not installed in this database, or not whole; install it " +
         part.how;
}

Status remove_part(Session session, const Part& part) {
  TRY(session.check_outside());
  auto there = TRY(is_installed(session, part));
  if (!there) return {};
  // Somebody's own schema of this name has no such function.
  TRY(check_part(session, part));
  // CASCADE takes the triggers of the user's tables, and would say so in a notice.
  TRY(session.run(
      std::string(
          "DO $$ BEGIN PERFORM pg_catalog.set_config('client_min_messages', 'warning', true);"
          " DROP SCHEMA ") +
          part.schema + " CASCADE; END $$",
      {}));
  return {};
}

}  // namespace leasehold::postgres
