// What an etcd URL says.
#pragma once

#include <string>
#include <vector>

#include "leasehold/error.h"
#include "leasehold/tls_options.h"
#include "leasehold/url.h"

namespace leasehold::etcd {

struct Options {
  std::string address;                 // the URL without secrets
  std::vector<std::string> endpoints;  // "host:port", "[::1]:port"
  std::string prefix;                  // of every key
  std::string user;
  std::string password;
  TlsOptions tls;

  // etcd://[user:password@]host[:2379][,host...][/prefix][?options]; fails with `invalid`.
  [[nodiscard]] static Result<Options> of(const Url& url);
};

}  // namespace leasehold::etcd
