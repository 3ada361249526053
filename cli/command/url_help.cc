#include "cli/command/url_help.h"

#include "cli/command/text.h"
#include "leasehold/registry.h"
#include "leasehold/stores.h"

namespace leasehold::cli {
namespace {

template <class Visit>
void for_each(std::string_view use, const Visit& visit) {
  register_stores();
  for (const Technology& technology : Registry::standard().technologies()) {
    for (const Scheme& scheme : technology.schemes) {
      if (const Use* found = scheme.use(use)) visit(scheme, *found);
    }
  }
}

}  // namespace

std::string example_urls(std::string_view use) {
  std::vector<std::string> urls;
  for_each(use, [&](const Scheme& scheme, const Use& found) {
    if (!scheme.variant) urls.push_back(found.example);
  });
  return either(urls);
}

std::vector<std::string> url_beginnings(std::string_view use) {
  std::vector<std::string> beginnings;
  for_each(use, [&](const Scheme& scheme, const Use& found) {
    const bool has_host = found.example.starts_with(scheme.name + "://");
    beginnings.push_back(scheme.name + (has_host ? "://" : ":"));
  });
  return beginnings;
}

bool can_be_used(const std::string& url, std::string_view use) {
  bool can = false;
  for_each(use,
           [&](const Scheme& scheme, const Use&) { can |= url.starts_with(scheme.name + ":"); });
  return can;
}

}  // namespace leasehold::cli
