#include "options.h"

#include <set>

#include "adapters/redis/description.h"
#include "keys.h"
#include "kit/text/number.h"
#include "kit/try.h"

namespace leasehold::redis {
namespace {

constexpr const char* kUsualPort = "6379";
constexpr const char* kUsualPrefix = "lock:";
constexpr int kUsualConnections = 64;
constexpr int kUsualNodeTimeout = 100;
constexpr int kMostDatabases = 1'000'000;

Result<int> number(const std::string& field, std::string_view text, int least, int most) {
  const auto value = kit::number_in<int>(text);
  if (value && *value >= least && *value <= most) return *value;
  return fail(ErrorCode::invalid, field + " must be a number from " + std::to_string(least) +
                                      " to " + std::to_string(most) + ", not '" +
                                      std::string(text) + "'");
}

Result<int> database_in(const Url& url) {
  if (url.path.empty() || url.path == "/") return 0;
  return number("the path of a " + url.scheme + " URL is the number of the database: it",
                std::string_view(url.path).substr(1), 0, kMostDatabases);
}

Result<int> option(const Url& url, const std::string& key, int usual, int least, int most) {
  if (url.query.count(key) == 0) return usual;
  return number("the option " + key, url.option(key), least, most);
}

Result<std::string> prefix_in(const Url& url) {
  if (url.query.count("prefix") == 0) return kUsualPrefix;
  std::string prefix = url.option("prefix");
  if (!prefix.empty()) {
    TRY(detail::check_name("the option prefix", prefix));
  }
  if (prefix.starts_with(kOwnKeys)) {
    return fail(ErrorCode::invalid, "the option prefix must not begin with '" +
                                        std::string(kOwnKeys) + "': such keys are Leasehold's own");
  }
  return prefix;
}

Result<Options> common(const Url& url) {
  Options options;
  options.address = url.redacted();
  auto tls = TRY(TlsOptions::of(url, url.scheme == "rediss"));
  auto database = TRY(database_in(url));
  auto prefix = TRY(prefix_in(url));
  options.prefix = std::move(prefix);
  auto connections = TRY(option(url, "connections", kUsualConnections, 1, 10'000));
  options.connections = static_cast<std::size_t>(connections);
  if (!url.user.empty() && url.password.empty()) {
    return fail(ErrorCode::invalid, "a " + url.scheme +
                                        " URL with a user needs a password, or one of the options "
                                        "password_file and password_env");
  }
  for (const HostPort& host : url.hosts) {
    HostPort full = host;
    if (full.port.empty()) full.port = kUsualPort;
    options.servers.push_back({std::move(full), tls, url.user, url.password, database});
  }
  return options;
}

}  // namespace

Result<Options> redis_options(const Url& url) {
  TRY(technology().check_options(url, kStoreUse));
  if (url.hosts.size() != 1) {
    return fail(ErrorCode::invalid,
                "a " + url.scheme + " URL names one server, as in redis://localhost:6379" +
                    (url.hosts.empty() ? "" : "; for several independent ones use redlock://"));
  }
  return common(url);
}

Result<Options> redlock_options(const Url& url) {
  TRY(technology().check_options(url, kStoreUse));
  if (url.hosts.size() < 3 || url.hosts.size() % 2 == 0) {
    return fail(
        ErrorCode::invalid,
        "a redlock URL names an odd number of independent servers, three or more, and "
        "not " +
            std::to_string(url.hosts.size()) +
            (url.hosts.size() < 3 ? ": so few survive no failure"
                                  : ": an even number survives no more failures than one less"));
  }
  auto options = common(url);
  if (!options) return options;
  std::set<std::string> seen;
  for (const resp::Endpoint& server : options->servers) {
    const std::string one = server.address.host + ":" + server.address.port;
    if (!seen.insert(one).second) {
      return fail(ErrorCode::invalid,
                  "the redlock URL names " + one + " twice; every server has one vote");
    }
  }
  auto timeout = TRY(option(url, "node_timeout", kUsualNodeTimeout, 1, 60'000));
  options->node_timeout = Millis(timeout);
  return options;
}

}  // namespace leasehold::redis
