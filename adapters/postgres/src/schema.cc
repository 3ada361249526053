#include "schema.h"

#include "leasehold/id.h"
#include "row_schema.h"
#include "session_schema.h"

namespace leasehold::postgres {
namespace {

constexpr const char* kMeta = R"sql(
CREATE TABLE @S.meta(
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  version integer NOT NULL,
  row_store uuid NOT NULL,
  session_store uuid NOT NULL);
)sql";

// The lock makes racing clients agree. The catalogue is read by queries after it: to_regclass()
// would answer from a cache that waiting for an advisory lock does not refresh.
constexpr const char* kCreate = R"sql(
DO $do$ BEGIN
  PERFORM pg_advisory_xact_lock(7810758531586156404);
  IF EXISTS (SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
             WHERE n.nspname = '@N' AND c.relname = 'meta') THEN RETURN; END IF;
  IF NOT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = '@N') THEN CREATE SCHEMA @S; END IF;
  EXECUTE $ddl$ @DDL $ddl$;
  PERFORM set_config('synchronous_commit', 'on', true);
END $do$
)sql";

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

std::string creation(const std::string& schema, Random& random) {
  std::string ddl = std::string(kMeta) + kRowSchema + kSessionSchema;
  ddl += "INSERT INTO @S.meta(version, row_store, session_store) VALUES (" +
         std::to_string(kSchemaVersion) + ", '" + StoreId::random(random).hex() + "', '" +
         StoreId::random(random).hex() + "');";
  return in_schema(replaced(kCreate, "@DDL", ddl), schema);
}

}  // namespace

std::string in_schema(std::string_view sql, const std::string& schema) {
  return replaced(replaced(std::string(sql), "@N", schema), "@S", '"' + schema + '"');
}

Status ensure_schema(Connection& connection, const std::string& schema, Random& random,
                     detail::CallWait& wait) {
  auto there = connection.run(in_schema("SELECT to_regclass('@S.meta') IS NOT NULL", schema), wait);
  if (!there) return fail(std::move(there.error()));
  if (!there->flag(0)) {
    auto made = connection.run(creation(schema, random), wait);
    if (!made && !connection.broken()) {
      return fail(
          ErrorCode::unavailable,
          "the schema '" + schema +
              "' is not in the database, and cannot be made by this role; let one that may CREATE "
              "in the database take a lock once, and see docs/postgres.md for the GRANT lines",
          made.error().store_words);
    }
    if (!made) return fail(std::move(made.error()));
  }
  const auto version = connection.run(in_schema("SELECT version FROM @S.meta", schema), wait);
  if (!version) return fail(version.error());
  if (version->count() == 1 && version->number(0) == kSchemaVersion) return {};
  return fail(
      ErrorCode::unsupported,
      "the schema '" + schema + "' has " +
          (version->count() == 1 ? "version " + std::string(version->text(0)) : "no version") +
          "; this program works with version " + std::to_string(kSchemaVersion));
}

}  // namespace leasehold::postgres
