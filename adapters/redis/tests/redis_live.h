// A server, and redis-cli beside our clients.
#pragma once

#include <algorithm>
#include <sstream>

#include "server.h"
#include "server_under_test.h"

namespace leasehold::testing {

inline std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> all;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) all.push_back(line);
  return all;
}

inline std::unique_ptr<redis::Server> server_at(std::uint16_t port, std::size_t connections = 4) {
  return redis::Server::make({.address = {"127.0.0.1", std::to_string(port)},
                              .tls = {},
                              .user = {},
                              .password = {}},
                             connections)
      .value();
}
inline std::unique_ptr<redis::Server> server_at(const rig::RedisServer& at) {
  return server_at(at.port());
}

class RedisLive : public ::testing::Test {
 protected:
  std::string cli(std::vector<std::string> words) { return under.server().cli(std::move(words)); }
  std::string sorted_keys() {
    auto keys = lines(cli({"KEYS", "*"}));
    std::sort(keys.begin(), keys.end());
    std::string text;
    for (const std::string& key : keys) text += key + "\n";
    return text;
  }
  RedisUnderTest under;
};

}  // namespace leasehold::testing
