#include "kit/text/resource_url.h"

#include <algorithm>
#include <string>

#include "kit/try.h"

namespace leasehold::kit {

Result<Url> resource_url(std::string_view text, std::initializer_list<std::string_view> schemes,
                         std::string_view place) {
  auto url = TRY(Url::parse(text));
  if (std::find(schemes.begin(), schemes.end(), url.scheme) == schemes.end()) {
    return fail(ErrorCode::invalid, std::string(place) + ", not at " + url.redacted());
  }
  TRY(url.read_secrets());
  return url;
}

}  // namespace leasehold::kit
