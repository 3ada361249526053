// What a postgres URL says.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "leasehold/error.h"
#include "leasehold/url.h"

namespace leasehold::postgres {

enum class LockKind {
  rows,      // leases are rows, and the database's clock ends them
  advisory,  // leases are session advisory locks, which other programs can take too
};

// One server to connect to, as libpq's keywords and values.
struct Host {
  std::string address;  // "host:port", for messages
  std::vector<std::pair<std::string, std::string>> keywords;
};

struct Options {
  std::string address;  // the URL without secrets
  LockKind mode = LockKind::rows;
  bool no_failover = false;  // the user asserts that no standby will take over
  std::string schema = "leasehold";
  std::string schema_owner;  // whom the user trusts with it; may be empty
  std::size_t connections = 32;
  std::vector<Host> hosts;

  // postgres://user:password@host:port,host:port/database?mode=rows|advisory&failover=none&
  // schema=NAME&schema_owner=NAME&connections=N, and the options of TlsOptions. Fails with
  // `invalid`.
  [[nodiscard]] static Result<Options> of(const Url& url);
};

// 1 to 63 lower-case letters, digits and '_': needs no quotes in SQL.
bool is_schema_name(const std::string& text);

}  // namespace leasehold::postgres
