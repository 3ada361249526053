#include "user_file.h"

#include <filesystem>

#include "adapters/sqlite/description.h"
#include "kit/try.h"
#include "store_file.h"

namespace leasehold::sqlite {
namespace {

constexpr int kBusyMillis = 5000;

Status check_file(const std::string& path, const std::string& what) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) {
    return fail(
        ErrorCode::unavailable,
        "there is no database at " + path + "; " + what +
            " must go into the database that holds your data, so that must be created first");
  }
  if (status.type() == std::filesystem::file_type::directory) {
    return fail(ErrorCode::unavailable, path + " is a folder, not a database");
  }
  return {};
}

}  // namespace

Status check_url(const Url& url) {
  TRY(technology().check_options(url, kFenceOffer));
  if (!url.hosts.empty()) {
    return fail(ErrorCode::invalid,
                "a sqlite URL has no host; write sqlite:/path/to/the.db, with one slash");
  }
  if (url.path.empty()) {
    return fail(ErrorCode::invalid, "a sqlite URL needs the path of the database file");
  }
  return {};
}

Result<UserFile> UserFile::open(const Url& url, const std::string& what) {
  TRY(check_url(url));
  TRY(check_file(url.path, what));
  auto database = TRY(Database::open(url.path, false));
  sqlite3_busy_timeout(database.handle(), kBusyMillis);
  // SQLite opens lazily; this is the first look at the file.
  if (sqlite3_exec(database.handle(), "PRAGMA main.schema_version", nullptr, nullptr, nullptr) !=
      SQLITE_OK) {
    return fail(last_error(database.handle(), "cannot read " + url.path));
  }
  if (is_lock_store(database.connection())) {
    return fail(ErrorCode::invalid, url.path + " is a file of locks; " + what +
                                        " must go into the database that holds your data");
  }
  return UserFile(url.path, std::move(database));
}

}  // namespace leasehold::sqlite
