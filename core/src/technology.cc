#include "leasehold/technology.h"

#include <algorithm>

#include "leasehold/tls_options.h"

namespace leasehold {

const Use* Scheme::use(std::string_view what) const {
  const auto found =
      std::find_if(uses.begin(), uses.end(), [&](const Use& it) { return it.what == what; });
  return found == uses.end() ? nullptr : &*found;
}

std::vector<UrlOption> Scheme::all_options() const {
  std::vector<UrlOption> all = options;
  const std::vector<UrlOption>& of_tls = TlsOptions::options();
  if (tls) all.insert(all.end(), of_tls.begin(), of_tls.end());
  return all;
}

const Scheme* Technology::scheme(std::string_view wanted) const {
  const auto found = std::find_if(schemes.begin(), schemes.end(),
                                  [&](const Scheme& it) { return it.name == wanted; });
  return found == schemes.end() ? nullptr : &*found;
}

const Use* Technology::use(std::string_view what) const {
  for (const Scheme& it : schemes) {
    if (const Use* found = it.use(what)) return found;
  }
  return nullptr;
}

Status Technology::check_options(const Url& url, std::string_view what) const {
  const Scheme* own = scheme(url.scheme);
  if (own == nullptr) {
    return fail(ErrorCode::internal, "'" + url.scheme + "' is no scheme of " + title);
  }
  std::vector<std::string> known;
  for (const UrlOption& it : own->all_options()) {
    if (it.only_for.empty() || it.only_for == what) known.push_back(it.name);
  }
  return url.only_options(known);
}

}  // namespace leasehold
