#include "outbox.h"

#include <string>
#include <utility>

#include "admin_connection.h"
#include "fence_functions.h"
#include "kit/try.h"
#include "leasehold/postgres/fence.h"
#include "leasehold/postgres/outbox.h"
#include "outbox_schema.h"
#include "part.h"
#include "sql/outbox.h"
#include "statements.h"

namespace leasehold::postgres {
namespace {

constexpr Part kOutbox = {"leasehold_outbox",
                          kOutboxVersion,
                          kOutboxSchema,
                          "the outbox",
                          "with `leasehold outbox install` or install_outbox()",
                          "all messages, also those that were not delivered yet"};

Status install(Session session) {
  TRY(make_fence(session));
  return install_part(session, kOutbox);
}

class PostgresOutbox final : public sql::SqlOutbox {
 public:
  explicit PostgresOutbox(AdminConnection connection)
      : SqlOutbox({.table = "leasehold_outbox.message",
                   .sign = '$',
                   .now = "clock_timestamp()",
                   .since = "(extract(epoch FROM clock_timestamp() - %) * 1000::numeric)::bigint",
                   .ago = "clock_timestamp() - %::double precision * interval '1 millisecond'",
                   .is_set_aside = "%.set_aside",
                   .elements = "SELECT pg_catalog.unnest(%::text[])",
                   .list = "{}"}),
        connection_(std::move(connection)) {}

  Status install() override { return connection_.named(postgres::install(connection_.session())); }

 private:
  Status check() override { return check_part(connection_.session(), kOutbox); }
  Result<sql::Rows> run(const std::string& sql, const sql::Parameters& parameters,
                        sql::Purpose purpose) override {
    return run_statement(connection_.session(), sql, parameters, purpose);
  }
  Status fenced(const Token& token, const std::function<Status()>& work) override {
    auto fence = TRY(Fence::open(connection_.handle(), kOutboxResource));
    return fence.transaction(token, [&](OpenTransaction&) { return work(); });
  }
  Error named(Error error) const override {
    return connection_.named(Status(fail(std::move(error)))).error();
  }

  AdminConnection connection_;
};

}  // namespace

Status install_outbox(pg_conn* connection) {
  return install(Session(connection));
}

Result<std::int64_t> outbox_put(pg_conn* connection, const OutboxEntry& entry) {
  const Session session(connection);
  TRY(check(entry));
  if (entry.payload.find('\0') != std::string::npos) {
    return fail(ErrorCode::invalid, "outbox payload has a zero byte, which no text can hold");
  }
  TRY(session.check_inside());
  const auto rows = session.run("SELECT leasehold_outbox.put($1, $2, $3, $4)",
                                {entry.key.c_str(), entry.topic.c_str(), entry.payload.c_str(),
                                 entry.idempotency_key ? entry.idempotency_key->c_str() : nullptr});
  if (!rows) {
    Error error = rows.error();
    if (is_missing(error)) error.message = not_installed(kOutbox);
    return fail(std::move(error));
  }
  return rows->number(0);
}

Result<std::unique_ptr<Outbox>> open_outbox(const Url& url) {
  auto connection = TRY(AdminConnection::open(url));
  return std::make_unique<PostgresOutbox>(std::move(connection));
}

}  // namespace leasehold::postgres
