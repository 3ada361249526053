// How a URL asks for TLS; the same words for every store that has it.
#pragma once

#include <string>

#include "leasehold/error.h"
#include "leasehold/url.h"

namespace leasehold {

// ?tls=on             verify the server against the system's certificates
// ?ca=FILE            ... against these instead (PEM); turns TLS on
// ?cert=FILE&key=FILE this client's certificate, where the server asks for one; turns TLS on
// ?server_name=NAME   what the server's certificate must say, if it is not the host in the URL
struct TlsOptions {
  bool on = false;
  std::string ca;
  std::string certificate;
  std::string key;
  std::string server_name;

  // Fails with `invalid`: a file that cannot be read, a certificate without its key, tls=off beside
  // other options. `always`: the scheme itself says TLS.
  [[nodiscard]] static Result<TlsOptions> of(const Url& url, bool always = false);
};

}  // namespace leasehold
