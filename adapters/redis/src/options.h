// What the URLs of this adapter say.
#pragma once

#include <string>
#include <vector>

#include "leasehold/error.h"
#include "leasehold/resp/connection.h"
#include "leasehold/time.h"
#include "leasehold/url.h"

namespace leasehold::redis {

struct Options {
  std::string address;                  // without secrets, for messages
  std::vector<resp::Endpoint> servers;  // one; Redlock: an odd number from 3 on
  std::string prefix;                   // of the lock keys
  std::size_t connections = 0;          // at most, to each server
  Millis node_timeout{0};               // Redlock: what one node may take
};

// `invalid`, naming what is wrong.
[[nodiscard]] Result<Options> redis_options(const Url& url);
[[nodiscard]] Result<Options> redlock_options(const Url& url);

}  // namespace leasehold::redis
