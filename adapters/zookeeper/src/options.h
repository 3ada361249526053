// What a ZooKeeper URL says.
#pragma once

#include <string>

#include "leasehold/error.h"
#include "leasehold/technology.h"
#include "leasehold/url.h"
#include "node_names.h"

namespace leasehold::zookeeper {

struct Options {
  std::string address;      // without secrets, for messages
  std::string hosts;        // "a:2181,[::1]:2181"
  std::string base;         // "/leasehold": the folder of everything we write
  std::string credentials;  // "user:password" for digest authentication; may be empty
  Recipe recipe = Recipe::curator;

  // Fails with `invalid`, naming the part that is wrong, or `unsupported` for TLS.
  [[nodiscard]] static Result<Options> of(const Url& url, std::string_view use = kStoreUse);
};

}  // namespace leasehold::zookeeper
