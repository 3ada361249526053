// The database file of somebody else that a URL names, for work at its resources.
#pragma once

#include <string>
#include <utility>

#include "database.h"
#include "leasehold/url.h"

namespace leasehold::sqlite {

// `invalid` unless the URL names a file and nothing else.
[[nodiscard]] Status check_url(const Url& url);

class UserFile {
 public:
  // The file must be there. `what` goes into it, as the complaint about a missing one says: "the
  // fence". `invalid` (URL) or `unavailable`.
  [[nodiscard]] static Result<UserFile> open(const Url& url, const std::string& what);

  Connection connection() const { return database_.connection(); }
  // The same, as the operator's view of any SQL database asks for it.
  Connection session() const { return connection(); }
  Connection session_of_role() const { return connection(); }
  sqlite3* handle() const { return database_.handle(); }

  // The same result; a failure has the path.
  template <class T>
  Result<T> named(Result<T> result) const {
    if (!result) result.error().address = path_;
    return result;
  }

 private:
  UserFile(std::string path, Database database)
      : path_(std::move(path)), database_(std::move(database)) {}

  std::string path_;
  Database database_;
};

}  // namespace leasehold::sqlite
