#include "leasehold/detail/shown_word.h"

#include "leasehold/url.h"

namespace leasehold::detail {

std::string shown(const std::string& word) {
  if (word.find_first_of("@?") == std::string::npos) return word;  // no place for a password
  if (const auto url = Url::parse(word)) return url->redacted();
  const std::size_t address = word.find("://");
  if (address != std::string::npos) return word.substr(0, address) + "://...";
  const std::size_t options = word.find('?');
  return options == std::string::npos ? word : word.substr(0, options) + "?...";
}

}  // namespace leasehold::detail
