#include "schema.h"

#include "advisory_schema.h"
#include "counter_schema.h"
#include "kit/text/other_version.h"
#include "kit/try.h"
#include "leasehold/id.h"
#include "part.h"
#include "row_schema.h"
#include "schema_owner.h"
#include "together_schema.h"

namespace leasehold::postgres {
namespace {

constexpr const char* kMeta = R"sql(
CREATE TABLE IF NOT EXISTS @S.meta(
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  version integer NOT NULL,
  row_store uuid NOT NULL,
  session_store uuid NOT NULL,
  token_ceiling bigint NOT NULL,
  server_start timestamptz NOT NULL,
  counter_file oid NOT NULL,
  sweep_after interval NOT NULL DEFAULT '1 minute');
)sql";

// The lock makes racing clients agree. The catalogue is read by queries after it: to_regclass()
// would answer from a cache that waiting for an advisory lock does not refresh.
constexpr const char* kCreate = R"sql(
DO $do$ BEGIN
  @TRUSTED
  PERFORM pg_advisory_xact_lock(7810758531586156404);
  IF NOT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = '@N') THEN
    CREATE SCHEMA @S;
  ELSIF @STRANGER IS NOT NULL THEN
    RAISE insufficient_privilege;
  END IF;
  IF EXISTS (SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
             WHERE n.nspname = '@N' AND c.relname = 'meta') THEN
    RETURN;
  END IF;
  PERFORM set_config('client_min_messages', 'warning', true);
  EXECUTE $ddl$ @DDL $ddl$;
  PERFORM set_config('synchronous_commit', 'on', true);
END $do$
)sql";

std::string creation(const SchemaPlace& place, Random& random) {
  std::string ddl = std::string(kMeta) + kPartFunctions + kCounterSchema + kRowSchema +
                    kTogetherSchema + kAdvisorySchema;
  ddl +=
      "INSERT INTO @S.meta(version, row_store, session_store, token_ceiling, server_start,"
      " counter_file) VALUES (@VERSION, '" +
      StoreId::random(random).hex() + "', '" + StoreId::random(random).hex() +
      "', 10000, pg_postmaster_start_time(), pg_relation_filenode('@S.token'));";
  std::string sql = replaced(kCreate, "@TRUSTED", kTrustedNames);
  sql = replaced(std::move(sql), "@STRANGER", stranger_in(place));
  sql = replaced(std::move(sql), "@DDL", ddl);
  sql = replaced(std::move(sql), "@VERSION", std::to_string(kSchemaVersion));
  return in_schema(sql, place.name);
}

Status make_schema(Connection& connection, const SchemaPlace& place, Random& random,
                   waiting::CallWait& wait) {
  // What is read after waiting for the lock must be new, whatever the role's default is.
  auto made = connection.run(
      "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; " + creation(place, random), wait);
  if (made) return {};
  if (connection.broken()) return fail(std::move(made.error()));
  return fail(ErrorCode::unavailable,
              "the schema '" + place.name +
                  "' is not in the database, and cannot be made by this role; let its owner, or "
                  "one that may CREATE in the database, take a lock once, and see docs/postgres.md "
                  "for the GRANT lines",
              made.error().store_words);
}

// 0 if it is not there.
Result<std::int64_t> schema_version(Connection& connection, const SchemaPlace& place,
                                    waiting::CallWait& wait) {
  const auto seen = TRY(connection.run(
      in_schema("SELECT pg_catalog.to_regclass('@S.meta') IS NOT NULL, ", place.name) +
          stranger_in(place),
      wait));
  if (!seen.is_null(1)) return fail(belongs_to_stranger(place, seen.text(1)));
  if (!seen.flag(0)) return 0;
  const auto version =
      TRY(connection.run(in_schema("SELECT version FROM @S.meta", place.name), wait));
  if (version.count() == 1) return version.number(0);
  return fail(ErrorCode::unsupported, "the schema '" + place.name + "' has no version");
}

// Its tokens have another lineage: a fence does not compare them with those of the old one.
std::string begin_afresh(const SchemaPlace& place) {
  return "stop all programs that use it, and DROP SCHEMA " + place.name +
         " CASCADE, or name another one with the option schema=NAME";
}

}  // namespace

std::string in_schema(std::string_view sql, const std::string& schema) {
  return replaced(replaced(std::string(sql), "@N", schema), "@S", '"' + schema + '"');
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

std::string stranger_in(const SchemaPlace& place) {
  return in_schema(replaced(kStrangerBesides, "@OWNER", place.owner), place.name);
}

Error belongs_to_stranger(const SchemaPlace& place, std::string_view stranger) {
  Error error = belongs_to(place.name, stranger);
  error.message +=
      "; or, unless this role is a superuser, say in the URL that you trust it: schema_owner=" +
      std::string(stranger);
  return error;
}

Status ensure_schema(Connection& connection, const SchemaPlace& place, Random& random,
                     waiting::CallWait& wait) {
  auto version = schema_version(connection, place, wait);
  if (version && *version == 0) {
    TRY(make_schema(connection, place, random, wait));
    version = schema_version(connection, place, wait);
  }
  if (!version) return fail(std::move(version.error()));
  if (*version == kSchemaVersion) return {};
  return fail(ErrorCode::unsupported,
              "the schema '" + place.name + "' has version " + std::to_string(*version) +
                  ", and this program works with version " + std::to_string(kSchemaVersion) +
                  kit::remedy_for_version(*version, kSchemaVersion, begin_afresh(place)));
}

}  // namespace leasehold::postgres
