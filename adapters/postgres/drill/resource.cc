// The number as a row of a PostgreSQL table.
#include <libpq-fe.h>

#include "adapters/postgres/description.h"
#include "admin_connection.h"
#include "drill/runner/resource_module.h"
#include "kit/text/number.h"
#include "kit/try.h"
#include "leasehold/postgres/claim.h"
#include "leasehold/postgres/fence.h"
#include "part.h"

namespace leasehold::drill {
namespace {

using postgres::Rows;

// A table of this name that somebody else has made could run what they like as this role.
constexpr postgres::Part kDrill = {"leasehold_drill",
                                   1,
                                   R"sql(
CREATE OR REPLACE FUNCTION leasehold_drill.version() RETURNS integer LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp AS 'SELECT @VERSION';
CREATE TABLE IF NOT EXISTS leasehold_drill.cell(name text PRIMARY KEY, value bigint NOT NULL);
)sql",
                                   "the drill's table",
                                   "with a drill whose role may",
                                   "the numbers of earlier drills"};

class PostgresResource final : public Resource {
 public:
  PostgresResource(postgres::AdminConnection connection, std::string name, Fencing fencing)
      : connection_(std::move(connection)), name_(std::move(name)), fencing_(fencing) {}

  Status prepare(bool create) {
    if (create) {
      TRY(postgres::install_fence(connection_.handle()));
      auto installed = connection_.named(postgres::install_part(connection_.session(), kDrill));
      if (!installed) return installed;
      TRY(run("INSERT INTO leasehold_drill.cell VALUES($1, 0) ON CONFLICT DO NOTHING",
              {name_.c_str()}));
    }
    auto there = connection_.named(postgres::check_part(connection_.session(), kDrill));
    if (!there) return there;
    if (fencing_ != Fencing::token) return {};
    auto fence = TRY(postgres::Fence::open(connection_.handle(), name_));
    fence_ = std::move(fence);
    return {};
  }

  Result<std::uint64_t> enter(const Pass& pass) override {
    if (fencing_ == Fencing::token) {
      return fence_->transaction(*pass.token, [&](postgres::OpenTransaction&) { return peek(); });
    }
    auto claim = TRY(postgres::Claim::take(connection_.handle(), name_, pass.request));
    claim_ = std::move(claim);
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
        TRY(run("SELECT value FROM leasehold_drill.cell WHERE name = $1", {name_.c_str()}));
    return rows.count() == 0 ? 0 : kit::number_in<std::uint64_t>(rows.text(0)).value_or(0);
  }

 private:
  Status put(std::uint64_t value) {
    const std::string number = std::to_string(value);
    TRY(run("UPDATE leasehold_drill.cell SET value = $2 WHERE name = $1",
            {name_.c_str(), number.c_str()}));
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
  auto url = TRY(Url::parse(choice.url));
  TRY(url.read_secrets());
  // What the store in the same database is told means nothing here.
  const Technology technology = postgres::technology();
  for (const UrlOption& option : technology.scheme(url.scheme)->options) {
    if (option.only_for == kStoreUse) url.query.erase(option.name);
  }
  auto connection = TRY(postgres::AdminConnection::open(url));
  auto resource =
      std::make_unique<PostgresResource>(std::move(connection), choice.name, choice.fencing);
  TRY(resource->prepare(choice.create));
  return resource;
}

}  // namespace
}  // namespace leasehold::drill

LEASEHOLD_DRILL_RESOURCE_MODULE(leasehold::drill::open_it)
