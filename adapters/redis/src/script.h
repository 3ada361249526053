// Lua scripts, and a call of one.
#pragma once

#include <string>
#include <vector>

namespace leasehold::redis {

// Sent by its SHA-1, and in full where the server does not have it.
class Script {
 public:
  explicit Script(std::string source);
  const std::string& source() const { return source_; }
  const std::string& sha() const { return sha_; }

 private:
  std::string source_;
  std::string sha_;
};

// One per operation; what they do and answer stands in script.cc. Made at first use.
struct Scripts {
  Script acquire, acquire_many, renew, release, release_many, force_release, set_permits, inspect,
      find_ours, record, begin;
  static const Scripts& all();
};

struct ScriptCall {
  const Script& script;
  std::vector<std::string> keys;
  std::vector<std::string> arguments = {};

  // EVALSHA, or EVAL.
  void append_to(std::string& commands, bool in_full = false) const;
  std::string command(bool in_full = false) const;
};

}  // namespace leasehold::redis
