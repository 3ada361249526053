#include "options.h"

#include "adapters/etcd/description.h"
#include "kit/try.h"
#include "leasehold/name.h"

namespace leasehold::etcd {
namespace {

std::string endpoint_of(const HostPort& host) {
  const bool v6 = host.host.find(':') != std::string::npos;
  return (v6 ? "[" + host.host + "]" : host.host) + ":" + (host.port.empty() ? "2379" : host.port);
}

Result<std::string> prefix_in(const std::string& path) {
  std::string prefix = path.starts_with('/') ? path.substr(1) : path;
  if (prefix.empty()) return "leasehold/";
  TRY(detail::check_name("the path of an etcd URL, the prefix of its keys,", prefix));
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
  auto prefix = TRY(prefix_in(url.path));
  Options options{.address = url.redacted(),
                  .endpoints = {},
                  .prefix = std::move(prefix),
                  .user = url.user,
                  .password = url.password,
                  .tls = std::move(tls)};
  for (const HostPort& host : url.hosts) options.endpoints.push_back(endpoint_of(host));
  return options;
}

}  // namespace leasehold::etcd
