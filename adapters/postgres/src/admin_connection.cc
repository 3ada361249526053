#include "admin_connection.h"

#include "options.h"

namespace leasehold::postgres {
namespace {

constexpr auto kPatience = std::chrono::seconds(10);

// The role's own names are found.
constexpr const char* kPatient =
    "SELECT pg_catalog.set_config('lock_timeout', '10s', true),"
    " pg_catalog.set_config('statement_timeout', '30s', true)";

const char* patient_and_trusting_no_names() {
  static const std::string sql =
      std::string(kPatient) + ", pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true)";
  return sql.c_str();
}

constexpr const char* kFullName = R"sql(
SELECT pg_catalog.format('%I.%I', n.nspname, c.relname) FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
WHERE c.oid OPERATOR(pg_catalog.=) pg_catalog.to_regclass($1)::pg_catalog.oid
)sql";

}  // namespace

Status check_resource_url(const Url& url) {
  return url.only_options({"tls", "ca", "cert", "key", "server_name"});
}

Result<AdminConnection> AdminConnection::open(const Url& url) {
  if (auto ok = check_resource_url(url); !ok) return fail(std::move(ok.error()));
  auto options = Options::of(url);
  if (!options) return fail(std::move(options.error()));
  const leasehold::detail::Alarm never;
  auto connection = Connection::open(options->hosts, {BootClock::now() + kPatience, {}}, never);
  if (!connection) {
    connection.error().message = options->address + ": " + connection.error().message;
    return fail(std::move(connection.error()));
  }
  if (!begin_each_with((*connection)->handle(), patient_and_trusting_no_names())) {
    return fail(ErrorCode::unavailable, "libpq is out of memory");
  }
  return AdminConnection(options->address, std::move(*connection));
}

std::string AdminConnection::full_name(const std::string& table) const {
  if (table.find('\0') != std::string::npos) return table;
  const auto rows = session().run_after(kPatient, kFullName, {table.c_str()});
  return rows && rows->count() == 1 ? std::string(rows->text(0)) : table;
}

}  // namespace leasehold::postgres
