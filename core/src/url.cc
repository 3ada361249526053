#include "leasehold/url.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "kit/system/file_content.h"
#include "kit/text/number.h"
#include "kit/text/percent.h"
#include "kit/text/shown_word.h"
#include "kit/try.h"

namespace leasehold {
namespace {

constexpr const char* kPasswordFile = "password_file";
constexpr const char* kPasswordEnv = "password_env";

// A password in an option is refused by every store, but its URL may be told before that.
bool may_be_a_secret(std::string_view key) {
  return key != kPasswordFile && key != kPasswordEnv &&
         kit::secret_word_in(key) != std::string_view::npos;
}

tl::unexpected<Error> bad(std::string why) {
  return fail(ErrorCode::invalid, "store URL " + std::move(why));
}

std::optional<std::string> decoded(std::string_view text) {
  auto plain = kit::percent_decoded(text);
  if (plain && plain->find('\0') != std::string::npos) plain.reset();
  return plain;
}

std::string encoded(std::string_view part, std::string_view special = "%?") {
  return kit::percent_encoded(part, [&](char c) {
    return static_cast<unsigned char>(c) > ' ' && c != '\x7f' &&
           special.find(c) == std::string_view::npos;
  });
}

// The text before the first `separator`, which is removed from `rest` with it.
std::string_view take_until(std::string_view& rest, char separator) {
  const std::size_t at = rest.find(separator);
  const std::string_view head = rest.substr(0, at);
  rest = at == std::string_view::npos ? std::string_view() : rest.substr(at + 1);
  return head;
}

bool is_scheme(std::string_view text) {
  return !text.empty() && std::islower(static_cast<unsigned char>(text.front())) &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return std::islower(c) || std::isdigit(c) || c == '+' || c == '-';
         });
}

// Brackets are for IPv6 addresses alone, and a host is printed as it is.
bool is_host(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return c > ' ' && c != 0x7f && c != '[' && c != ']';
  });
}

Result<HostPort> parse_host(std::string_view text) {
  HostPort host;
  if (text.starts_with('[')) {  // an IPv6 address
    const std::size_t close = text.find(']');
    if (close == std::string_view::npos) return bad("has a '[' without its ']'");
    host.host = text.substr(1, close - 1);
    text.remove_prefix(close + 1);
    if (!text.empty() && !text.starts_with(':')) return bad("has text between ']' and the port");
    host.port = text.empty() ? "" : text.substr(1);
  } else {
    const bool has_port = text.find(':') != std::string_view::npos;
    host.host = take_until(text, ':');
    host.port = text;
    if (has_port && host.port.empty()) return bad("has a ':' without a port");
  }
  if (host.host.empty()) {
    return bad("has an empty host; in a password a '/' is written %2F and an '@' %40");
  }
  if (!is_host(host.host)) {
    return bad("has a host with a space, a control character or a bracket in it");
  }
  if (host.port.empty()) return host;
  const auto port = host.port.size() > 5 ? std::nullopt : kit::digits_in<int>(host.port);
  if (!port) return bad("has a port that is not a number");
  if (*port < 1 || *port > 65'535) return bad("has a port that is not from 1 to 65535");
  return host;
}

Status parse_authority(std::string_view text, Url& url) {
  if (const std::size_t at = text.rfind('@'); at != std::string_view::npos) {
    std::string_view secret = text.substr(0, at);
    const auto user = decoded(take_until(secret, ':'));
    const auto password = decoded(secret);
    if (!user || !password) return bad("has a wrong percent sign in the user or password");
    url.user = *user;
    url.password = *password;
    text.remove_prefix(at + 1);
  }
  while (!text.empty()) {
    auto host = TRY(parse_host(take_until(text, ',')));
    url.hosts.push_back(std::move(host));
  }
  return {};
}

Status parse_query(std::string_view text, Url& url) {
  while (!text.empty()) {
    std::string_view value = take_until(text, '&');
    const auto key = decoded(take_until(value, '='));
    const auto plain = decoded(value);
    if (!key || !plain || key->empty()) return bad("has an option that is not key=value");
    if (!url.query.emplace(*key, *plain).second) return bad("has the option '" + *key + "' twice");
  }
  return {};
}

// Then it is nearly always a password that was cut in two, and its first part would be the host.
bool has_late_at_sign(std::string_view address) {
  if (!address.starts_with("//")) return false;
  const std::size_t place_ends = address.find_first_of("/?", 2);
  return place_ends != std::string_view::npos &&
         address.find('@', place_ends) != std::string_view::npos;
}

}  // namespace

Result<Url> Url::parse(std::string_view text) {
  Url url;
  if (text.find('\0') != std::string_view::npos) return bad("has a zero byte");
  const bool has_scheme = text.find(':') != std::string_view::npos;
  const std::string_view scheme = take_until(text, ':');
  if (!has_scheme || !is_scheme(scheme)) {
    return bad(
        "must begin with a scheme and a colon, as in sqlite:/var/lib/app/locks.db or "
        "redis://host:6379");
  }
  url.scheme = scheme;
  if (has_late_at_sign(text)) {  // it is not told what stands there
    return bad(
        "has an '@' behind a '/' or a '?'; in a password write '/' as %2F and '?' as %3F, in a "
        "path or an option '@' as %40");
  }
  std::string_view address = take_until(text, '?');
  TRY(parse_query(text, url));
  if (address.starts_with("//")) {
    address.remove_prefix(2);
    const std::size_t slash = std::min(address.find('/'), address.size());
    TRY(parse_authority(address.substr(0, slash), url));
    address.remove_prefix(slash);
  }
  if (address.starts_with('~')) {
    return bad(
        "begins its path with '~', which no shell expands there; write $HOME instead, as in " +
        url.scheme + ":$HOME/..., or %7E if the name begins so");
  }
  const auto path = decoded(address);
  if (!path) return bad("has a wrong percent sign in the path");
  url.path = *path;
  return url;
}

std::string Url::redacted() const {
  std::string text = scheme + ":";
  // With "//" in a path alone, its beginning would be read as a host.
  if (!hosts.empty() || !user.empty() || path.starts_with("//")) text += "//";
  if (!user.empty()) text += encoded(user, "%?/@:,") + "@";
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    const bool v6 = hosts[i].host.find(':') != std::string::npos;
    if (i > 0) text += ",";
    text += v6 ? "[" + hosts[i].host + "]" : hosts[i].host;
    if (!hosts[i].port.empty()) text += ":" + hosts[i].port;
  }
  // An '@' in the path behind a '//' would be taken for a part of a password.
  const bool looks_secret = text.find("//") != std::string::npos;
  const std::size_t tilde = path.starts_with('~') ? 1 : 0;  // parse() refuses a bare one
  if (tilde == 1) text += "%7E";
  text += encoded(path.substr(tilde), looks_secret ? "%?@" : "%?");
  char separator = '?';
  for (const auto& [key, value] : query) {
    if (may_be_a_secret(key)) continue;
    text += separator + encoded(key, "%&=@") + "=" + encoded(value, "%&@");
    separator = '&';
  }
  return text;
}

Status Url::read_secrets() {
  const std::string file = option(kPasswordFile);
  const std::string variable = option(kPasswordEnv);
  if (file.empty() && variable.empty()) return {};
  if (!password.empty() || (!file.empty() && !variable.empty())) {
    return bad("has more than one password; give it, or one of password_file and password_env");
  }
  if (!variable.empty()) {
    const char* value = std::getenv(variable.c_str());
    if (value == nullptr || *value == '\0') {
      return bad("says password_env=" + variable + ", but that variable is not set");
    }
    password = value;
    return {};
  }
  auto content = kit::content_of_file(file);
  if (!content)
    return bad("says password_file=" + file + ", but that file " + content.error().message);
  password = std::move(*content);
  while (password.ends_with('\n') || password.ends_with('\r')) password.pop_back();
  if (password.empty()) return bad("says password_file=" + file + ", but that file is empty");
  if (password.find('\0') != std::string::npos) {
    return bad("says password_file=" + file + ", but that file has a zero byte");
  }
  return {};
}

std::string Url::option(const std::string& key) const {
  const auto found = query.find(key);
  return found == query.end() ? "" : found->second;
}

Status Url::only_options(const std::vector<std::string>& known) const {
  for (const auto& [key, value] : query) {
    if (key == kPasswordFile || key == kPasswordEnv) continue;
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    std::string list;
    for (const std::string& name : known) list += (list.empty() ? "" : ", ") + name;
    if (!list.empty()) list += std::string(", ") + kPasswordFile + ", " + kPasswordEnv;
    return bad("has the unknown option '" + key + "'; " + scheme +
               (list.empty() ? " takes none" : " takes: " + list));
  }
  return {};
}

}  // namespace leasehold
