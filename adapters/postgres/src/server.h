// What is at the other end: how old, behind a pooler, with standbys.
#pragma once

#include <string>

#include "connection.h"
#include "leasehold/store.h"
#include "options.h"

namespace leasehold::postgres {

struct Server {
  bool pooled = false;  // something between gives out server sessions per transaction or so
  StoreTraits traits;

  // Looks at the server behind a new connection. `unsupported` if its database has another
  // encoding; `unavailable` if it is too old, and as Connection::run.
  [[nodiscard]] static Result<Server> look(Connection& connection, const Options& options,
                                           waiting::CallWait& wait);
};

// 150019 is version 15.19. `unavailable` if it is too old.
[[nodiscard]] Status check_version(int version);

// What a direct connection sets for itself, so that what a role or a database has as its default
// does not matter; its first column is the server's process.
const std::string& session_setup();

}  // namespace leasehold::postgres
