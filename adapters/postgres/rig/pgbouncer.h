// pgbouncer in front of a PostgreSQL server.
#pragma once

#include <memory>
#include <string>

#include "adapters/postgres/rig/server.h"
#include "rig/port.h"

namespace leasehold::rig {

class Pgbouncer {
 public:
  // `mode`: "transaction" or "session".
  explicit Pgbouncer(const PostgresServer& server, const std::string& mode = "transaction");

  std::string url(const std::string& database) const;

 private:
  TempFolder folder_;
  Port port_ = Port::take();
  std::unique_ptr<ServerProcess> process_;
};

}  // namespace leasehold::rig
