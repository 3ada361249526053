#include "fence_admin.h"

#include <filesystem>
#include <utility>

#include "database.h"
#include "fence_table.h"
#include "guard.h"

namespace leasehold::sqlite {
namespace {

constexpr int kBusyMillis = 5000;

class SqliteFenceAdmin final : public FenceAdmin {
 public:
  SqliteFenceAdmin(std::string path, Database database)
      : path_(std::move(path)), database_(std::move(database)) {}

  Status install() override { return named(install_fence_table(database_.connection())); }

  Result<std::vector<FenceMark>> marks() override {
    return named(read_marks(database_.connection()));
  }

  Status adopt(const ResourceName& resource, const Lineage& lineage,
               TokenNumber at_least) override {
    return named(adopt_lineage(database_.connection(), resource, lineage, at_least));
  }

  Status reset(const ResourceName& resource) override {
    return named(reset_mark(database_.connection(), resource));
  }
  Status remove() override { return named(remove_fence_table(database_.connection())); }

  Status guard(const std::string& table, const ResourceName& resource) override {
    return named(add_guard(database_.connection(), table, resource));
  }
  Status unguard(const std::string& table) override {
    return named(remove_guard(database_.connection(), table));
  }
  Result<std::vector<GuardedTable>> guards() override {
    return named(read_guards(database_.connection()));
  }

 private:
  template <class T>
  Result<T> named(Result<T> result) const {
    if (!result) result.error().message = path_ + ": " + result.error().message;
    return result;
  }

  std::string path_;
  Database database_;
};

Status check_file(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) {
    return fail(ErrorCode::unavailable,
                "there is no database at " + path +
                    "; the fence goes into the database that holds your data, so that must be "
                    "created first");
  }
  if (status.type() == std::filesystem::file_type::directory) {
    return fail(ErrorCode::unavailable, path + " is a folder, not a database");
  }
  return {};
}

}  // namespace

Status check_url(const Url& url) {
  if (auto ok = url.only_options({}); !ok) return ok;
  if (!url.hosts.empty()) {
    return fail(ErrorCode::invalid,
                "a sqlite URL has no host; write sqlite:/path/to/the.db, with one slash");
  }
  if (url.path.empty()) {
    return fail(ErrorCode::invalid, "a sqlite URL needs the path of the database file");
  }
  return {};
}

Result<std::unique_ptr<FenceAdmin>> open_fence_admin(const Url& url) {
  if (auto ok = check_url(url); !ok) return fail(std::move(ok.error()));
  if (auto ok = check_file(url.path); !ok) return fail(std::move(ok.error()));
  auto database = Database::open(url.path, false);
  if (!database) return fail(std::move(database.error()));
  sqlite3_busy_timeout(database->handle(), kBusyMillis);
  // SQLite opens lazily; this is the first look at the file.
  if (sqlite3_exec(database->handle(), "PRAGMA main.schema_version", nullptr, nullptr, nullptr) !=
      SQLITE_OK) {
    return fail(last_error(database->handle(), "cannot read " + url.path));
  }
  return std::make_unique<SqliteFenceAdmin>(url.path, std::move(*database));
}

}  // namespace leasehold::sqlite
