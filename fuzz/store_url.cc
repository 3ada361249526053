// Store URLs, and what every adapter reads out of them.
//
// Rules: what is accepted can be printed without its password, and read again with the same
// meaning. No message and no printed URL has the password in it. Numbers are within their limits.
#include <algorithm>
#include <string>

#include "adapters/etcd/src/options.h"
#include "adapters/postgres/src/options.h"
#include "adapters/redis/src/options.h"
#include "adapters/zookeeper/src/options.h"
#include "fuzz/fuzz.h"
#include "kit/text/shown_word.h"
#include "leasehold/url.h"

namespace leasehold::fuzz {
namespace {

constexpr std::string_view kSecret = "S3cr3tWord";

bool same_hosts(const Url& one, const Url& other) {
  return std::equal(
      one.hosts.begin(), one.hosts.end(), other.hosts.begin(), other.hosts.end(),
      [](const HostPort& a, const HostPort& b) { return a.host == b.host && a.port == b.port; });
}

bool may_be_left_out(const std::string& key) {
  return kit::secret_word_in(key) != std::string::npos;
}

void check_printed(const Url& url) {
  const std::string printed = url.redacted();
  must(is_printable(printed), "a URL is printed on one line");
  const auto again = Url::parse(printed);
  must(again.has_value(), "a printed URL can be read");
  must(again->redacted() == printed, "a URL is printed the same again");
  must(again->scheme == url.scheme && same_hosts(*again, url) && again->path == url.path,
       "a printed URL names the same place");
  must(again->password.empty(), "a printed URL has no password");
  must(again->user == url.user, "a printed URL names the same user");
  for (const auto& [key, value] : url.query) {
    if (may_be_left_out(key)) continue;
    must(again->query.contains(key) && again->option(key) == value,
         "a printed URL has the same options");
  }
}

void check_message(const Error& error) {
  must(!error.message.empty(), "a refusal says why");
  must(error.message.find(kSecret) == std::string::npos, "no message has the password in it");
  must(error.store_words.find(kSecret) == std::string::npos, "no words have the password in them");
}

template <class Options>
bool accepted(const Result<Options>& options) {
  if (!options) {
    check_message(options.error());
    return false;
  }
  must(options->address.find(kSecret) == std::string::npos, "no address has the password in it");
  must(is_printable(options->address), "an address is printed on one line");
  return true;
}

void check_redis(const Url& url) {
  for (const bool many : {false, true}) {
    const auto options = many ? redis::redlock_options(url) : redis::redis_options(url);
    if (!accepted(options)) continue;
    must(many ? options->servers.size() % 2 == 1 && options->servers.size() >= 3
              : options->servers.size() == 1,
         "Redis is one server, Redlock an odd number");
    must(options->connections >= 1 && options->connections <= 10'000, "connections have a limit");
    must(options->prefix.size() <= kMaxNameBytes, "a prefix has a limit");
    must(!options->prefix.starts_with("leasehold:"), "a prefix is not of our own keys");
    for (const resp::Endpoint& server : options->servers) {
      const int port = std::atoi(server.address.port.c_str());
      must(port >= 1 && port <= 65'535, "a port has 16 bits");
      must(server.database >= 0, "a database has a number");
    }
  }
}

void check_options(const Url& url) {
  check_redis(url);
  if (const auto etcd = etcd::Options::of(url); accepted(etcd)) {
    must(etcd->endpoints.size() == url.hosts.size(), "every host is an endpoint");
    must(etcd->prefix.ends_with('/'), "an etcd prefix is a folder");
  }
  if (const auto zookeeper = zookeeper::Options::of(url); accepted(zookeeper)) {
    must(zookeeper->base.size() > 1 && zookeeper->base.front() == '/' &&
             zookeeper->base.back() != '/' && is_printable(zookeeper->base),
         "a ZooKeeper base is a folder");
  }
  if (const auto postgres = postgres::Options::of(url); accepted(postgres)) {
    must(postgres->connections >= 1 && postgres->connections <= 1000, "connections have a limit");
    must(postgres::is_schema_name(postgres->schema), "a schema needs no quotes");
    must(postgres->hosts.size() == std::max<std::size_t>(url.hosts.size(), 1),
         "every host is connected to, or the local server");
    must(url.path.starts_with('/'), "a database stands behind a slash");
  }
}

void read(const std::string& text) {
  const auto url = Url::parse(text);
  if (!url) return check_message(url.error());
  const std::string printed = url->redacted();
  must(printed.find(kSecret) == std::string::npos, "no printed URL has the password in it");
  check_printed(*url);
  check_options(*url);
}

}  // namespace
}  // namespace leasehold::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace leasehold::fuzz;
  const std::string_view text = text_of(data, size);
  // A name that somebody gave to a file, an option or a user is told; only a password never is.
  if (text.find(kSecret) != std::string_view::npos) return 0;
  read(std::string(text));
  read("redis://user:" + std::string(kSecret) + std::string(text));
  return 0;
}
