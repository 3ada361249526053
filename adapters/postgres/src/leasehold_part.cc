#include "leasehold_part.h"

#include <utility>

namespace leasehold::postgres {
namespace {

// The lock makes racing installers agree; the catalogue is read after it.
constexpr const char* kInstall = R"sql(
DO $do$ BEGIN
  PERFORM pg_catalog.pg_advisory_xact_lock(7810758531586156407);
  IF EXISTS (SELECT 1 FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
             WHERE n.nspname = 'leasehold' AND c.relname = '@TABLE') THEN RETURN; END IF;
  IF NOT EXISTS (SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = 'leasehold') THEN
    CREATE SCHEMA leasehold;
  END IF;
  EXECUTE $ddl$ @DDL $ddl$;
END $do$
)sql";

Result<bool> is_there(Session session, const LeaseholdPart& part) {
  auto rows = session.run(
      "SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n"
      " ON n.oid = c.relnamespace WHERE n.nspname = 'leasehold' AND c.relname = $1)",
      {part.table});
  if (!rows) return fail(std::move(rows.error()));
  return rows->flag(0);
}

}  // namespace

std::string replaced_all(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

Status install_part(Session session, const LeaseholdPart& part) {
  if (auto ok = session.check_outside(); !ok) return ok;
  auto there = is_there(session, part);
  if (!there) return fail(std::move(there.error()));
  if (!*there) {
    auto made = session.run(
        replaced_all(replaced_all(kInstall, "@TABLE", part.table), "@DDL", part.ddl), {});
    if (!made) {
      made.error().message =
          std::string("the ") + part.name + " was not made: " + made.error().message;
      return fail(std::move(made.error()));
    }
  }
  return check_part(session, part);
}

Status check_part(Session session, const LeaseholdPart& part) {
  if (auto ok = session.check(); !ok) return ok;
  auto there = is_there(session, part);
  if (!there) return fail(std::move(there.error()));
  if (!*there) {
    return fail(ErrorCode::unavailable, std::string("the ") + part.name +
                                            " is not installed in this database; " + part.how);
  }
  auto version = session.run(std::string("SELECT ") + part.version, {});
  if (!version) return fail(std::move(version.error()));
  if (version->number(0) == part.number) return {};
  return fail(ErrorCode::unavailable,
              "the database has version " + std::string(version->text(0)) + " of Leasehold's " +
                  part.name + "; this program works with version " + std::to_string(part.number));
}

}  // namespace leasehold::postgres
