#include "options.h"

#include "adapters/zookeeper/description.h"
#include "kit/text/visible_text.h"
#include "kit/try.h"
#include "leasehold/name.h"
#include "leasehold/tls_options.h"

namespace leasehold::zookeeper {
namespace {

constexpr std::string_view kDefaultBase = "/leasehold";
constexpr std::string_view kDefaultPort = "2181";

Result<std::string> base_in(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  if (path.empty() || path == "/") return std::string(kDefaultBase);
  std::string_view rest = path;
  while (!rest.empty()) {
    rest.remove_prefix(1);
    const std::string_view part = rest.substr(0, rest.find('/'));
    if (part.empty() || part == "." || part == "..") {
      return fail(ErrorCode::invalid,
                  "the path of a zookeeper URL is a folder such as /locks, without empty parts, "
                  "'.' and '..'");
    }
    rest.remove_prefix(part.size());
  }
  TRY(detail::check_name("path of the zookeeper URL", path));
  if (path == "/zookeeper" || path.starts_with("/zookeeper/")) {
    return fail(ErrorCode::invalid, "the folder /zookeeper belongs to the server itself");
  }
  return path;
}

std::string hosts_in(const Url& url) {
  std::string hosts;
  for (const HostPort& it : url.hosts) {
    const bool v6 = it.host.find(':') != std::string::npos;
    if (!hosts.empty()) hosts += ',';
    hosts += v6 ? "[" + it.host + "]" : it.host;
    hosts += ':';
    hosts += it.port.empty() ? kDefaultPort : it.port;
  }
  return hosts;
}

}  // namespace

Result<Options> Options::of(const Url& url, std::string_view use) {
  TRY(technology().check_options(url, use));
  const auto tls = TRY(TlsOptions::of(url));
  if (tls.on) {
    return fail(ErrorCode::unsupported,
                "the ZooKeeper client library of this build has no TLS; leave the option out, and "
                "use a tunnel if the network is not trusted");
  }
  if (url.hosts.empty()) {
    return fail(ErrorCode::invalid,
                "a zookeeper URL needs a host: zookeeper://zk-1:2181,zk-2:2181/locks");
  }
  for (const HostPort& it : url.hosts) {
    if (it.host.empty()) return fail(ErrorCode::invalid, "the zookeeper URL has an empty host");
  }
  if (url.user.empty() != url.password.empty()) {
    return fail(ErrorCode::invalid,
                "a zookeeper URL has a user and a password, or neither: "
                "zookeeper://user:password@host/locks");
  }
  if (url.user.find(':') != std::string::npos) {
    return fail(ErrorCode::invalid, "the user of a zookeeper URL must not contain ':'");
  }
  const std::string recipe = url.option("recipe");
  if (!recipe.empty() && recipe != "curator" && recipe != "kazoo") {
    return fail(ErrorCode::invalid,
                "the option recipe is curator or kazoo, not " + kit::in_quotes(recipe));
  }
  auto base = TRY(base_in(url.path));
  Options options{.address = url.redacted(),
                  .hosts = hosts_in(url),
                  .base = std::move(base),
                  .credentials = {},
                  .recipe = recipe == "kazoo" ? Recipe::kazoo : Recipe::curator};
  if (!url.user.empty()) options.credentials = url.user + ":" + url.password;
  return options;
}

}  // namespace leasehold::zookeeper
