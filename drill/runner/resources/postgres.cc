// The number as a row of a PostgreSQL table.
#include <libpq-fe.h>

#include <charconv>

#include "../resource_module.h"
#include "admin_connection.h"
#include "leasehold/postgres/claim.h"
#include "leasehold/postgres/fence.h"

namespace leasehold::drill {
namespace {

struct Clear {
  void operator()(PGresult* result) const { PQclear(result); }
};
using Rows = std::unique_ptr<PGresult, Clear>;

class PostgresResource final : public Resource {
 public:
  PostgresResource(postgres::AdminConnection connection, std::string name, Fencing fencing)
      : connection_(std::move(connection)), name_(std::move(name)), fencing_(fencing) {}

  Status prepare(bool create) {
    if (create) {
      if (auto done = postgres::install_fence(connection_.handle()); !done) return done;
      auto made =
          run("CREATE TABLE IF NOT EXISTS drill_cell(name text PRIMARY KEY, value bigint NOT NULL)",
              {});
      if (!made) return fail(made.error());
      made = run("INSERT INTO drill_cell VALUES($1, 0) ON CONFLICT DO NOTHING", {name_});
      if (!made) return fail(made.error());
    }
    if (fencing_ != Fencing::token) return {};
    auto fence = postgres::Fence::open(connection_.handle(), name_);
    if (!fence) return fail(fence.error());
    fence_ = std::move(*fence);
    return {};
  }

  Result<std::uint64_t> enter(const Pass& pass) override {
    if (fencing_ == Fencing::token) {
      return fence_->transaction(*pass.token, [&](postgres::OpenTransaction&) { return peek(); });
    }
    auto claim = postgres::Claim::take(connection_.handle(), name_, pass.request);
    if (!claim) return fail(claim.error());
    claim_ = std::move(*claim);
    return claim_->transaction([&](postgres::OpenTransaction&) { return peek(); });
  }

  Status write(const Pass& pass, std::uint64_t value) override {
    if (fencing_ == Fencing::token) {
      return fence_->transaction(*pass.token,
                                 [&](postgres::OpenTransaction&) { return put(value); });
    }
    return claim_->transaction([&](postgres::OpenTransaction&) { return put(value); });
  }

  Result<std::uint64_t> peek() override {
    const auto rows = run("SELECT value FROM drill_cell WHERE name = $1", {name_});
    if (!rows) return fail(rows.error());
    std::uint64_t value = 0;
    const std::string_view text = PQgetvalue(rows->get(), 0, 0);
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
  }

 private:
  Status put(std::uint64_t value) {
    const auto done =
        run("UPDATE drill_cell SET value = $2 WHERE name = $1", {name_, std::to_string(value)});
    if (!done) return fail(done.error());
    return {};
  }

  Result<Rows> run(const char* sql, const std::vector<std::string>& values) {
    std::vector<const char*> raw;
    for (const std::string& value : values) raw.push_back(value.c_str());
    Rows rows(PQexecParams(connection_.handle(), sql, static_cast<int>(raw.size()), nullptr,
                           raw.data(), nullptr, nullptr, 0));
    const ExecStatusType status = PQresultStatus(rows.get());
    if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK) return rows;
    return connection_.named(Result<Rows>(
        fail(ErrorCode::unavailable,
             "cannot use the table drill_cell of the drill, which it makes if the role may",
             postgres::words_of(rows.get()))));
  }

  postgres::AdminConnection connection_;
  const std::string name_;
  const Fencing fencing_;
  std::optional<postgres::Fence> fence_;
  std::optional<postgres::Claim> claim_;
};

Result<std::unique_ptr<Resource>> open_it(const ResourceChoice& choice) {
  auto url = Url::parse(choice.url);
  if (!url) return fail(url.error());
  if (auto read = url->read_secrets(); !read) return fail(read.error());
  // What the store in the same database is told means nothing here.
  for (const char* of_locks : {"mode", "schema", "connections"}) url->query.erase(of_locks);
  auto connection = postgres::AdminConnection::open(*url);
  if (!connection) return fail(connection.error());
  auto resource =
      std::make_unique<PostgresResource>(std::move(*connection), choice.name, choice.fencing);
  if (auto done = resource->prepare(choice.create); !done) return fail(done.error());
  return resource;
}

}  // namespace
}  // namespace leasehold::drill

LEASEHOLD_DRILL_RESOURCE_MODULE(leasehold::drill::open_it)
