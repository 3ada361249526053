#include "admin_connection.h"

#include "adapters/postgres/description.h"
#include "kit/try.h"
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

}  // namespace

Status check_resource_url(const Url& url) {
  return technology().check_options(url, kFenceOffer);
}

Result<AdminConnection> AdminConnection::open(const Url& url) {
  TRY(check_resource_url(url));
  auto options = TRY(Options::of(url));
  const waiting::Alarm never;
  auto connection = Connection::open(options.hosts, {BootClock::now() + kPatience, {}}, never);
  if (!connection) return fail(error_at(options.address, std::move(connection.error())));
  if (!begin_each_with((*connection)->handle(), patient_and_trusting_no_names())) {
    return fail(ErrorCode::unavailable, "libpq is out of memory");
  }
  return AdminConnection(options.address, std::move(*connection));
}

Session AdminConnection::session_of_role() const {
  return Session(connection_->handle(), kPatient);
}

}  // namespace leasehold::postgres
