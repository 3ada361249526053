#include "words.h"

#include <algorithm>

#include "kit/text/number.h"
#include "net/conversation.h"

namespace leasehold::zookeeper {
namespace {

std::string_view take_line(std::string_view& text) {
  const auto end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

}  // namespace

Result<std::string> ask_word(const HostPort& host, const std::string& word,
                             const CallContext& context) {
  auto answer = net::converse(host, word, context);
  if (!answer) return answer;
  if (answer->find("not in the whitelist") != std::string::npos) {
    std::erase_if(*answer, [](unsigned char byte) { return byte < ' '; });  // it ends its line
    return fail(ErrorCode::unsupported, "the server does not answer '" + word + "'", *answer);
  }
  return answer;
}

std::map<std::string, std::string> fields_in(std::string_view text, std::string_view separator) {
  std::map<std::string, std::string> fields;
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    const auto at = line.find(separator);
    if (at == std::string_view::npos) continue;
    fields.emplace(line.substr(0, at), line.substr(at + separator.size()));
  }
  return fields;
}

std::optional<ServerVersion> version_in(std::string_view text) {
  const auto major = kit::take_number<int>(text);
  if (!major || !text.starts_with('.')) return std::nullopt;
  text.remove_prefix(1);
  const auto minor = kit::take_number<int>(text);
  if (!minor || *major < 0 || *minor < 0) return std::nullopt;
  return ServerVersion{*major, *minor};
}

Millis millis_in(std::string_view text) {
  constexpr Millis longest = std::chrono::hours(24 * 365);
  const bool is_number = !text.empty() && text.front() >= '0' && text.front() <= '9';
  const auto number = kit::take_number<std::int64_t>(text);
  if (is_number && !number) return longest;  // it does not fit
  return Millis(std::clamp<std::int64_t>(number.value_or(0), 0, longest.count()));
}

std::size_t voters_in(std::string_view config) {
  std::size_t voters = 0;
  while (!config.empty()) {
    const std::string_view line = take_line(config);
    if (!line.starts_with("server.")) continue;
    if (line.find(":observer") == std::string_view::npos) ++voters;
  }
  return voters;
}

}  // namespace leasehold::zookeeper
