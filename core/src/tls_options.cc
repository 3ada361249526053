#include "leasehold/tls_options.h"

#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace leasehold {

const std::vector<UrlOption>& TlsOptions::options() {
  static const std::vector<UrlOption> all = {
      {"tls", "on: encrypt, and verify the server against the system's certificates; or off"},
      {"ca", "a file (PEM) with the certificates to verify the server against; turns TLS on"},
      {"cert", "a file with this client's certificate, with key; turns TLS on"},
      {"key", "a file with the key of cert"},
      {"server_name", "what the server's certificate must say, if it is not the host in the URL"}};
  return all;
}

Result<TlsOptions> TlsOptions::of(const Url& url, bool always) {
  TlsOptions tls{.on = always,
                 .ca = url.option("ca"),
                 .certificate = url.option("cert"),
                 .key = url.option("key"),
                 .server_name = url.option("server_name")};
  for (const std::string& file : {tls.ca, tls.certificate, tls.key}) {
    if (file.empty() || access(file.c_str(), R_OK) == 0) continue;
    return fail(ErrorCode::invalid, "the TLS file '" + file + "' cannot be read",
                std::generic_category().message(errno));
  }
  if (tls.certificate.empty() != tls.key.empty()) {
    return fail(ErrorCode::invalid, "the options cert and key are given together, or not at all");
  }
  const bool implied =
      !tls.ca.empty() || !tls.certificate.empty() || !tls.server_name.empty() || always;
  const std::string wish = url.option("tls");
  if (!wish.empty() && wish != "on" && wish != "off") {
    return fail(ErrorCode::invalid, "the option tls is on or off, not '" + wish + "'");
  }
  if (wish == "off" && implied) {
    return fail(ErrorCode::invalid, "the URL says tls=off, and asks for TLS besides");
  }
  tls.on = implied || wish == "on";
  return tls;
}

}  // namespace leasehold
