// What a drill can do with SQLite: a file of locks, and the number as a row of a database; behind
// its fence, its claims, or nothing.
#include <sqlite3.h>

#include "drill/runner/parts.h"
#include "kit/try.h"
#include "leasehold/sqlite/claim.h"
#include "leasehold/sqlite/fence.h"
#include "leasehold/url.h"

namespace leasehold::sqlite {
namespace {

using namespace drill;

constexpr int kBusyMillis = 5000;

struct Close {
  void operator()(sqlite3* db) const { sqlite3_close(db); }
};
struct Finalize {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Database = std::unique_ptr<sqlite3, Close>;
using Statement = std::unique_ptr<sqlite3_stmt, Finalize>;

class SqliteResource final : public Resource {
 public:
  SqliteResource(Database db, std::string name, Fencing fencing)
      : db_(std::move(db)), name_(std::move(name)), fencing_(fencing) {}

  Status prepare(bool create) {
    if (create) {
      TRY(install_fence(db_.get()));
      constexpr const char* kTable =
          "PRAGMA journal_mode = WAL;"
          "CREATE TABLE IF NOT EXISTS drill_cell(name TEXT PRIMARY KEY, value INTEGER NOT NULL)";
      if (sqlite3_exec(db_.get(), kTable, nullptr, nullptr, nullptr) != SQLITE_OK) {
        return fail(broken("create"));
      }
      TRY(run("INSERT OR IGNORE INTO drill_cell VALUES(?2, ?1)", 0));
    }
    if (fencing_ != Fencing::token) return {};
    auto fence = TRY(Fence::open(db_.get(), name_));
    fence_ = std::move(fence);
    return {};
  }

  Result<std::uint64_t> enter(const Pass& pass) override {
    if (fencing_ == Fencing::none) return peek();
    if (fencing_ == Fencing::token) {
      return fence_->transaction(*pass.token, [&](OpenTransaction&) { return peek(); });
    }
    auto claim = TRY(Claim::take(db_.get(), name_, pass.request));
    claim_ = std::move(claim);
    // Read where the claim is still there.
    return claim_->transaction([&](OpenTransaction&) { return peek(); });
  }

  Status write(const Pass& pass, std::uint64_t value) override {
    if (fencing_ == Fencing::none) return put(value);
    if (fencing_ == Fencing::token) {
      return fence_->transaction(*pass.token, [&](OpenTransaction&) { return put(value); });
    }
    return claim_->transaction([&](OpenTransaction&) { return put(value); });
  }

  Result<std::uint64_t> peek() override {
    const Statement query = prepared("SELECT value FROM drill_cell WHERE name = ?2");
    if (!query || sqlite3_step(query.get()) != SQLITE_ROW) return fail(broken("read"));
    return static_cast<std::uint64_t>(sqlite3_column_int64(query.get(), 0));
  }

 private:
  Status put(std::uint64_t value) {
    return run("UPDATE drill_cell SET value = ?1 WHERE name = ?2",
               static_cast<sqlite3_int64>(value));
  }

  Statement prepared(const char* sql) {
    sqlite3_stmt* raw = nullptr;
    sqlite3_prepare_v2(db_.get(), sql, -1, &raw, nullptr);
    Statement statement(raw);
    if (statement) sqlite3_bind_text(raw, 2, name_.c_str(), -1, SQLITE_STATIC);
    return statement;
  }

  Status run(const char* sql, sqlite3_int64 value) {
    const Statement statement = prepared(sql);
    if (!statement) return fail(broken("write to"));
    sqlite3_bind_int64(statement.get(), 1, value);
    if (sqlite3_step(statement.get()) != SQLITE_DONE) return fail(broken("write to"));
    return {};
  }

  Error broken(const std::string& what) const {
    return Error(ErrorCode::unavailable, "cannot " + what + " the resource of the drill",
                 sqlite3_errmsg(db_.get()));
  }

  Database db_;
  const std::string name_;
  const Fencing fencing_;
  std::optional<Fence> fence_;
  std::optional<Claim> claim_;
};

Result<std::unique_ptr<Resource>> open_resource_in(const ResourceChoice& choice) {
  const auto url = TRY(Url::parse(choice.url));
  sqlite3* raw = nullptr;
  const int code = sqlite3_open(url.path.c_str(), &raw);
  Database db(raw);
  if (code != SQLITE_OK) {
    return fail(ErrorCode::unavailable, "cannot open " + url.path, sqlite3_errstr(code));
  }
  sqlite3_busy_timeout(raw, kBusyMillis);
  auto resource = std::make_unique<SqliteResource>(std::move(db), choice.name, choice.fencing);
  TRY(resource->prepare(choice.create));
  return resource;
}

}  // namespace

drill::Parts drill_parts() {
  return {.stores = {{.name = "sqlite",
                      .schemes = {"sqlite"},
                      .fence = "sqlite",
                      .keeps_fence = false,
                      .start =
                          [](const std::string& folder, const std::vector<Fault>&) {
                            return file_place("sqlite", folder + "/locks.db");
                          },
                      .why_not = [](Fault) { return "SQLite has no server and no network"; }}},
          .fences = {{.name = "sqlite",
                      .schemes = {"sqlite"},
                      .has_claims = true,
                      .start =
                          [](const std::string& folder) {
                            return file_place("sqlite", folder + "/resource.db");
                          },
                      .open = open_resource_in}}};
}

}  // namespace leasehold::sqlite
