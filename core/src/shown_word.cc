#include "leasehold/detail/shown_word.h"

#include "leasehold/url.h"

namespace leasehold::detail {

std::string shown(const std::string& word) {
  if (word.find_first_of("@?") == std::string::npos) return word;  // no place for a password
  if (const auto url = Url::parse(word)) {
    // "redis:/me:secret@host", with a slash too few.
    const bool hides_one = url->hosts.empty() && url->path.find(':') < url->path.rfind('@');
    return hides_one ? url->scheme + ":..." : url->redacted();
  }
  const std::size_t address = word.find("://");
  if (address != std::string::npos) return word.substr(0, address) + "://...";
  const std::size_t options = word.find('?');
  return options == std::string::npos ? word : word.substr(0, options) + "?...";
}

std::string without_passwords(std::string_view message) {
  std::string text;
  for (;;) {
    const std::size_t address = message.find("://");
    if (address == std::string_view::npos) return text.append(message);
    text.append(message.substr(0, address + 3));
    message.remove_prefix(address + 3);
    const std::string_view word = message.substr(0, message.find_first_of(" \t\n"));
    const std::size_t colon = word.find(':');
    const std::size_t at = word.rfind('@');
    if (at == std::string_view::npos || colon > at) {
      text.append(word);
      message.remove_prefix(word.size());
      continue;
    }
    text.append(word.substr(0, colon)).append(":***");
    message.remove_prefix(at);
  }
}

}  // namespace leasehold::detail
