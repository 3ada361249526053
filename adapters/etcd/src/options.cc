#include "options.h"

#include "adapters/etcd/description.h"
#include "kit/try.h"

namespace leasehold::etcd {
namespace {

std::string endpoint_of(const HostPort& host) {
  const bool v6 = host.host.find(':') != std::string::npos;
  return (v6 ? "[" + host.host + "]" : host.host) + ":" + (host.port.empty() ? "2379" : host.port);
}

std::string prefix_of(const std::string& path) {
  std::string prefix = path.starts_with('/') ? path.substr(1) : path;
  if (prefix.empty()) return "leasehold/";
  if (!prefix.ends_with('/')) prefix += '/';
  return prefix;
}

}  // namespace

Result<Options> Options::of(const Url& url) {
  TRY(technology().check_options(url, kStoreUse));
  if (url.hosts.empty()) {
    return fail(ErrorCode::invalid,
                "an etcd URL names at least one server: etcd://etcd-1:2379,etcd-2:2379/prefix");
  }
  if (url.user.empty() != url.password.empty()) {
    return fail(ErrorCode::invalid,
                "an etcd URL has a user and a password, or neither; a user without a password logs "
                "in by certificate (options cert and key)");
  }
  auto tls = TRY(TlsOptions::of(url));
  Options options{.address = url.redacted(),
                  .endpoints = {},
                  .prefix = prefix_of(url.path),
                  .user = url.user,
                  .password = url.password,
                  .tls = std::move(tls)};
  for (const HostPort& host : url.hosts) options.endpoints.push_back(endpoint_of(host));
  return options;
}

}  // namespace leasehold::etcd
