// A connection of our own to the database that a URL names, for work at its resources.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "connection.h"
#include "leasehold/url.h"
#include "session.h"

namespace leasehold::postgres {

// `invalid` for an option that has to do with locks.
[[nodiscard]] Status check_resource_url(const Url& url);

class AdminConnection {
 public:
  // The server ends statements after 30 s and waits for locks after 10 s, so that one that hangs
  // does not hang this program. `invalid` (URL) or `unavailable`, with the address.
  [[nodiscard]] static Result<AdminConnection> open(const Url& url);

  // Finds what pg_catalog has, and what is named in full.
  Session session() const { return Session(connection_->handle()); }
  // Finds tables of the user's by the role's own search_path, in which others may have put
  // functions and operators: only for statements that name theirs in full.
  Session session_of_role() const;
  PGconn* handle() const { return connection_->handle(); }

  // The same result; a failure has the address.
  template <class T>
  Result<T> named(Result<T> result) const {
    if (!result) result.error().address = address_;
    return result;
  }

 private:
  AdminConnection(std::string address, std::unique_ptr<Connection> connection)
      : address_(std::move(address)), connection_(std::move(connection)) {}

  std::string address_;
  std::unique_ptr<Connection> connection_;
};

}  // namespace leasehold::postgres
