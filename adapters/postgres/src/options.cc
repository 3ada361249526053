#include "options.h"

#include <arpa/inet.h>
#include <libpq-fe.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "adapters/postgres/description.h"
#include "kit/text/number.h"
#include "kit/text/percent.h"
#include "kit/try.h"
#include "leasehold/tls_options.h"

namespace leasehold::postgres {
namespace {

constexpr const char* kExample = "postgres://user@host/database";

tl::unexpected<Error> bad(std::string why) {
  return fail(ErrorCode::invalid, std::move(why));
}

bool is_ip_address(const std::string& host) {
  in6_addr ignored{};
  return inet_pton(AF_INET, host.c_str(), &ignored) == 1 ||
         inet_pton(AF_INET6, host.c_str(), &ignored) == 1;
}

// libpq looks for one only in the user's home folder before version 16.
Result<std::string> system_certificates() {
  if (PQlibVersion() >= 160000) return "system";
  for (const char* file : {"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
                           "/etc/ssl/cert.pem"}) {
    if (access(file, R_OK) == 0) return file;
  }
  return bad("the system's certificates were not found; say which with the option ca=FILE");
}

using Keywords = std::vector<std::pair<std::string, std::string>>;

void add_certificate(const TlsOptions& tls, Keywords& words) {
  if (tls.certificate.empty()) return;
  words.emplace_back("sslcert", tls.certificate);
  words.emplace_back("sslkey", tls.key);
}

// As libpq's users write it, and meaning what it means there.
Result<Keywords> libpq_tls(const Url& url, const TlsOptions& tls, const std::string& mode) {
  const auto modes = {"disable", "allow", "prefer", "require", "verify-ca", "verify-full"};
  if (std::find(modes.begin(), modes.end(), mode) == modes.end()) {
    return bad(
        "the option sslmode is disable, allow, prefer, require, verify-ca or verify-full, not '" +
        mode + "'");
  }
  if (!url.option("tls").empty())
    return bad("the options tls and sslmode are about the same: give one");
  Keywords words = {{"sslmode", mode}};
  if (!tls.ca.empty()) words.emplace_back("sslrootcert", tls.ca);
  add_certificate(tls, words);
  return words;
}

Result<Keywords> tls_keywords(const Url& url, const TlsOptions& tls) {
  if (const std::string mode = url.option("sslmode"); !mode.empty()) {
    return libpq_tls(url, tls, mode);
  }
  if (!tls.on) return {{{"sslmode", url.option("tls") == "off" ? "disable" : "prefer"}}};
  Keywords words = {{"sslmode", "verify-full"}};
  if (tls.ca.empty()) {
    auto system = TRY(system_certificates());
    words.emplace_back("sslrootcert", system);
  } else {
    words.emplace_back("sslrootcert", tls.ca);
  }
  add_certificate(tls, words);
  return words;
}

// "%2Frun%2Fpostgresql": a folder with a socket in it.
HostPort decoded(HostPort where) {
  auto plain = kit::percent_decoded(where.host);
  if (plain && plain->starts_with('/')) where.host = std::move(*plain);
  return where;
}

// Of libpq's ways to name a socket: no host at all, the option host, a host that is a folder.
Result<std::vector<HostPort>> places_of(const Url& url) {
  const std::string folder = url.option("host");
  if (!folder.empty() && (!folder.starts_with('/') || !url.hosts.empty())) {
    return bad(
        "the option host is the folder of a socket, as in "
        "postgres:///database?host=/run/postgresql");
  }
  const std::string port = url.option("port");
  const auto number = kit::digits_in<std::uint16_t>(port);
  if (!port.empty() && (folder.empty() || number.value_or(0) == 0)) {
    return bad("the option port goes with the option host, and is a number from 1 to 65535");
  }
  if (url.hosts.empty()) return std::vector{HostPort{folder, port}};
  std::vector<HostPort> places;
  for (const HostPort& where : url.hosts) places.push_back(decoded(where));
  return places;
}

Result<Host> host_of(const HostPort& where, const Url& url, const TlsOptions& tls) {
  const bool socket = where.host.empty() || where.host.starts_with('/');
  if (socket && tls.on) {
    return bad("a postgres URL of a local socket has no TLS: name a host, or leave TLS out");
  }
  const std::string port = where.port.empty() ? "5432" : where.port;
  Host host{.address = where.host.empty() ? "libpq's default host" : where.host + ":" + port,
            .keywords = {}};
  auto& words = host.keywords;
  if (tls.server_name.empty()) {
    if (!where.host.empty()) words.emplace_back("host", where.host);
  } else {
    // libpq compares the certificate with `host`, and connects to `hostaddr`.
    if (!is_ip_address(where.host)) {
      return bad("the option server_name needs an IP address as the host, not '" + where.host +
                 "'");
    }
    words.emplace_back("host", tls.server_name);
    words.emplace_back("hostaddr", where.host);
  }
  if (!where.host.empty()) words.emplace_back("port", port);
  words.emplace_back("dbname", url.path.substr(1));
  if (!url.user.empty()) words.emplace_back("user", url.user);
  if (!url.password.empty()) words.emplace_back("password", url.password);
  words.emplace_back("application_name", "leasehold");
  words.emplace_back("client_encoding", "UTF8");
  words.emplace_back("target_session_attrs", "read-write");
  words.emplace_back("gssencmode", "disable");
  words.emplace_back("keepalives", "1");
  words.emplace_back("keepalives_idle", "10");
  words.emplace_back("keepalives_interval", "5");
  words.emplace_back("keepalives_count", "3");
  words.emplace_back("tcp_user_timeout", "15000");
  auto more = TRY(tls_keywords(url, tls));
  words.insert(words.end(), more.begin(), more.end());
  return host;
}

// Needs no quotes in a literal of SQL, whatever the session's settings are.
bool is_role_name(const std::string& text) {
  const auto plain = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '.' || c == '-';
  };
  return text.size() <= 63 && std::all_of(text.begin(), text.end(), plain);
}

Status read_choices(const Url& url, Options& options) {
  const std::string mode = url.option("mode");
  if (!mode.empty() && mode != "rows" && mode != "advisory") {
    return bad("the option mode is rows or advisory, not '" + mode + "'");
  }
  options.mode = mode == "advisory" ? LockKind::advisory : LockKind::rows;

  const std::string failover = url.option("failover");
  if (!failover.empty() && failover != "none") {
    return bad("the option failover can only be none, not '" + failover + "'");
  }
  options.no_failover = failover == "none";

  if (const std::string schema = url.option("schema"); !schema.empty()) {
    if (!is_schema_name(schema)) {
      return bad("the option schema is 1 to 63 lower-case letters, digits and '_', not '" + schema +
                 "'");
    }
    options.schema = schema;
  }
  options.schema_owner = url.option("schema_owner");
  if (!options.schema_owner.empty() && !is_role_name(options.schema_owner)) {
    return bad("the option schema_owner is 1 to 63 letters, digits and any of '_.-', not '" +
               options.schema_owner + "'");
  }
  if (const std::string count = url.option("connections"); !count.empty()) {
    options.connections = kit::number_in<std::size_t>(count).value_or(0);
    if (options.connections < 1 || options.connections > 1000) {
      return bad("the option connections is a number from 1 to 1000, not '" + count + "'");
    }
  }
  return {};
}

}  // namespace

bool is_schema_name(const std::string& text) {
  const auto plain = [](unsigned char c) {
    return std::islower(c) != 0 || std::isdigit(c) != 0 || c == '_';
  };
  return !text.empty() && text.size() <= 63 &&
         std::isdigit(static_cast<unsigned char>(text[0])) == 0 && !text.starts_with("pg_") &&
         std::all_of(text.begin(), text.end(), plain);
}

Result<Options> Options::of(const Url& url) {
  TRY(technology().check_options(url, kStoreUse));
  if (url.hosts.empty() && !url.path.empty() && !url.path.starts_with('/')) {
    return bad(std::string("a postgres URL has two slashes before its host: ") + kExample);
  }
  if (url.path.size() < 2 || url.path.find('/', 1) != std::string::npos) {
    return bad(std::string("a postgres URL needs one database name: ") + kExample);
  }
  for (const std::string variable : {"PGHOSTADDR", "PGSERVICE"}) {
    const char* elsewhere = std::getenv(variable.c_str());
    if (elsewhere == nullptr || *elsewhere == '\0') continue;
    return bad("the environment variable " + variable +
               " would lead past the host in the URL; unset it");
  }
  Options options;
  options.address = url.redacted();
  TRY(read_choices(url, options));
  const auto tls = TRY(TlsOptions::of(url));
  const auto places = TRY(places_of(url));
  for (const HostPort& where : places) {
    auto host = TRY(host_of(where, url, tls));
    options.hosts.push_back(std::move(host));
  }
  return options;
}

}  // namespace leasehold::postgres
