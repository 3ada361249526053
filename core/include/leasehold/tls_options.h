// How a URL asks for TLS; the same words for every store that has it.
#pragma once

#include <string>
#include <vector>

#include "leasehold/error.h"
#include "leasehold/url.h"

namespace leasehold {

struct TlsOptions {
  bool on = false;
  std::string ca;
  std::string certificate;
  std::string key;
  std::string server_name;

  // Which there are.
  static const std::vector<UrlOption>& options();

  // Fails with `invalid`: a file that cannot be read, a certificate without its key, tls=off beside
  // other options. `always`: the scheme itself says TLS.
  [[nodiscard]] static Result<TlsOptions> of(const Url& url, bool always = false);
};

}  // namespace leasehold
