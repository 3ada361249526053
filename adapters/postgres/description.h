#pragma once

#include "leasehold/technology.h"

namespace leasehold::postgres {

inline Technology technology() {
  const auto scheme = [](const std::string& name) {
    const std::string url = name + "://user@host/db";
    return Scheme{
        .name = name,
        .uses = {{"store", url},
                 {"fence", url},
                 {"outbox", url},
                 {"table of idempotency keys", url},
                 {"serial queue to install", url},
                 {"serial queue", url}},
        .options = {{"mode", "rows (the default) or advisory: how locks are kept", "store"},
                    {"failover", "none: you assert that no standby ever takes over", "store"},
                    {"schema", "where Leasehold's tables are; default leasehold", "store"},
                    {"schema_owner", "a role that you trust with the schema", "store"},
                    {"connections", "how many at most, with mode=rows; default 32", "store"},
                    {"host", "a folder with the server's socket, if the URL names no host"},
                    {"port", "of that socket; default 5432"},
                    {"sslmode", "as libpq has it, instead of tls"}},
        .tls = true,
        .variant = name != "postgres"};
  };
  return {
      .name = "postgres",
      .title = "PostgreSQL",
      .schemes = {scheme("postgres"), scheme("postgresql")},
      .guarantee = Guarantee::correctness,
      .beware =
          "With asynchronous standbys PostgreSQL may lose what it has granted; --fenced is then "
          "refused."};
}

}  // namespace leasehold::postgres
