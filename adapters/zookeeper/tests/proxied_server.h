// The shared server behind a proxy that knows which bytes are requests.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "one_server.h"
#include "testing/store_wire_conformance.h"

namespace leasehold::testing {

inline std::int32_t number_at(std::string_view bytes, std::size_t at) {
  std::uint32_t number = 0;
  for (std::size_t i = at; i < at + 4; ++i) {
    number = number << 8 | static_cast<unsigned char>(bytes[i]);
  }
  return static_cast<std::int32_t>(number);
}

// True for what a store call sends; not for what keeps a session: its opening and closing, pings,
// heartbeats, watches set again.
inline bool is_zookeeper_request(std::string_view bytes) {
  constexpr std::int32_t kExists = 3;
  constexpr std::int32_t kGet = 4;
  constexpr std::int32_t kCreate2 = 15;
  constexpr std::int32_t kCloseSession = -11;
  while (bytes.size() >= 12) {
    const auto length = static_cast<std::size_t>(number_at(bytes, 0));
    const std::int32_t xid = number_at(bytes, 4);
    const std::int32_t type = number_at(bytes, 8);
    const std::string_view body = bytes.substr(4, length);
    const bool of_lineage = body.find("/.lineage") != std::string_view::npos &&
                            (type == kExists || type == kGet || type == kCreate2);
    if (xid > 0 && type != kCloseSession && !of_lineage) return true;
    bytes.remove_prefix(std::min(bytes.size(), length + 4));
  }
  return false;
}

// Sessions up to 20 s: they outlive a restart of the server.
inline ZookeeperServer& long_server() {
  static ZookeeperServer server({.min_session_ms = 1000, .max_session_ms = 20'000});
  return server;
}

class ProxiedZookeeper final : public ServerUnderTest {
 public:
  std::string url() override { return "zookeeper://" + long_server().address() + folder_; }
  std::string proxied_url() const { return "zookeeper://" + proxy_.address() + folder_; }
  std::unique_ptr<Store> open() override { return open_zookeeper(url()); }
  std::unique_ptr<Store> open_through_proxies() override { return open_zookeeper(proxied_url()); }
  std::vector<TcpProxy*> proxies() override { return {&proxy_}; }
  TcpProxy& proxy() { return proxy_; }
  const std::string& folder() const { return folder_; }
  void kill() override { long_server().kill(); }
  void start() override { long_server().start(); }

 private:
  const std::string folder_ = fresh_folder();
  TcpProxy proxy_{long_server().port(), is_zookeeper_request};
};

}  // namespace leasehold::testing
