#include "kit/text/shown_word.h"

#include <algorithm>
#include <cctype>

#include "leasehold/url.h"

namespace leasehold::kit {
namespace {

// "redis:/me:secret@host", with a slash too few, and "me:secret@host", without a scheme; but a path
// such as sqlite:/a@b is one.
bool hides_password(const std::string& word, const Result<Url>& url) {
  const std::size_t at = word.rfind('@');
  if (at == std::string::npos || word.find(':') > at) return false;
  return !url || !url->path.starts_with('/') || url->path.find(':') < url->path.rfind('@');
}

}  // namespace

std::size_t secret_word_in(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  std::size_t first = std::string::npos;
  for (const char* word : {"pass", "pwd", "secret", "auth", "token"}) {
    first = std::min(first, lower.find(word));
  }
  return first;
}

std::string shown(const std::string& word) {
  const bool has_place =
      word.find_first_of("@?") != std::string::npos || word.find("://") != std::string::npos;
  const std::size_t password = secret_word_in(word);  // "host=db password=secret"
  const bool is_told = word.find('=', password) != std::string::npos;
  if (!has_place && !is_told) return word;
  const auto url = Url::parse(word);
  if (url && !url->hosts.empty()) return url->redacted();
  const auto until = [&](std::string_view mark, std::size_t from = 0) {
    return word.substr(0, word.find(mark, from)).append(mark).append("...");
  };
  if (!url && has_place && word.find("://") != std::string::npos) return until("://");
  if (hides_password(word, url)) return until(":");
  if (url && has_place) return url->redacted();
  if (is_told) return until("=", password);
  return word.find('?') == std::string::npos ? word : until("?");
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

}  // namespace leasehold::kit
