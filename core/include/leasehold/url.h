// Store addresses: scheme://user:password@host:port,host:port/path?key=value
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "leasehold/error.h"

namespace leasehold {

struct HostPort {
  std::string host;
  std::string port;  // empty: the store's usual one
};

// What may stand behind the '?', as in ?mode=advisory.
struct UrlOption {
  std::string name;
  std::string help;
  std::string only_for = {};  // one use of the URL (technology.h); empty: all
};

struct Url {
  std::string scheme;
  std::string user;
  std::string password;
  std::vector<HostPort> hosts;
  std::string path;  // percent-decoded; "sqlite:a/b.db" gives "a/b.db", "sqlite:///a" gives "/a"
  std::map<std::string, std::string> query;  // percent-decoded

  // Fails with `invalid`, also for a path that begins with '~'. The message repeats no password.
  [[nodiscard]] static Result<Url> parse(std::string_view text);

  // The address without its password: safe for logs, errors and metrics. parse() reads it again,
  // and finds the same store if the password comes from a file or the environment.
  std::string redacted() const;

  // Reads the password that `?password_file=PATH` or `?password_env=NAME` points to. Fails with
  // `invalid` if it is not there, or if there are two. Without these options it does nothing.
  [[nodiscard]] Status read_secrets();

  // Fails with `invalid` if a query key is not among `known` or read by read_secrets().
  [[nodiscard]] Status only_options(const std::vector<std::string>& known) const;

  // The value of an option; empty if it was not given.
  std::string option(const std::string& key) const;
};

}  // namespace leasehold
