// The number as a row of a PostgreSQL table.
#include <libpq-fe.h>

#include <charconv>

#include "../resource_module.h"
#include "admin_connection.h"
#include "leasehold/postgres/claim.h"
#include "leasehold/postgres/fence.h"
#include "part.h"

namespace leasehold::drill {
namespace {

using postgres::Rows;

// A table of this name that somebody else has made could run what they like as this role.
constexpr postgres::Part kDrill = {"leasehold_drill", 1, R"sql(
CREATE OR REPLACE FUNCTION leasehold_drill.version() RETURNS integer LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp AS 'SELECT @VERSION';
CREATE TABLE IF NOT EXISTS leasehold_drill.cell(name text PRIMARY KEY, value bigint NOT NULL);
)sql",
                                   "the drill's table", "with a drill whose role may"};

class PostgresResource final : public Resource {
 public:
  PostgresResource(postgres::AdminConnection connection, std::string name, Fencing fencing)
      : connection_(std::move(connection)), name_(std::move(name)), fencing_(fencing) {}

  Status prepare(bool create) {
    if (create) {
      if (auto done = postgres::install_fence(connection_.handle()); !done) return done;
      auto installed = connection_.named(postgres::install_part(connection_.session(), kDrill));
      if (!installed) return installed;
      const auto made = run("INSERT INTO leasehold_drill.cell VALUES($1, 0) ON CONFLICT DO NOTHING",
                            {name_.c_str()});
      if (!made) return fail(made.error());
    }
    auto there = connection_.named(postgres::check_part(connection_.session(), kDrill));
    if (!there) return there;
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
    const auto rows =
        run("SELECT value FROM leasehold_drill.cell WHERE name = $1", {name_.c_str()});
    if (!rows) return fail(rows.error());
    std::uint64_t value = 0;
    const std::string_view text = rows->count() == 0 ? "" : rows->text(0);
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
  }

 private:
  Status put(std::uint64_t value) {
    const std::string number = std::to_string(value);
    const auto done = run("UPDATE leasehold_drill.cell SET value = $2 WHERE name = $1",
                          {name_.c_str(), number.c_str()});
    if (!done) return fail(done.error());
    return {};
  }

  Result<Rows> run(const char* sql, postgres::Parameters values) {
    auto rows = connection_.session().run(sql, values);
    if (!rows) {
      rows.error().message =
          "cannot use the drill's table leasehold_drill.cell: " + std::move(rows.error().message);
    }
    return connection_.named(std::move(rows));
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
  for (const char* of_locks : {"mode", "schema", "schema_owner", "connections"})
    url->query.erase(of_locks);
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
