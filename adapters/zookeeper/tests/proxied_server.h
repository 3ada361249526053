// The shared server behind a proxy that knows which bytes are requests.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "one_server.h"
#include "testing/store_wire_conformance.h"

namespace leasehold::testing {

// Types of requests, as the protocol numbers them.
inline constexpr std::int32_t kDelete = 2;
inline constexpr std::int32_t kExists = 3;
inline constexpr std::int32_t kGetData = 4;
inline constexpr std::int32_t kSetData = 5;
inline constexpr std::int32_t kGetChildren = 12;
inline constexpr std::int32_t kSync = 9;
inline constexpr std::int32_t kMulti = 14;
inline constexpr std::int32_t kCreate2 = 15;
inline constexpr std::int32_t kCloseSession = -11;

inline std::int32_t number_at(std::string_view bytes, std::size_t at) {
  std::uint32_t number = 0;
  for (std::size_t i = at; i < at + 4; ++i) {
    number = number << 8 | static_cast<unsigned char>(bytes[i]);
  }
  return static_cast<std::int32_t>(number);
}

// Of a request whose length was in an earlier chunk, as far as its type tells.
inline std::size_t length_of_body(std::string_view body) {
  const std::size_t with_path = 12 + static_cast<std::size_t>(number_at(body, 8));
  switch (number_at(body, 4)) {
    case kSync:
      return with_path;
    case kExists:
    case kGetData:
    case kGetChildren:
      return with_path + 1;
    case kDelete:
      return with_path + 4;
    default:
      return body.size();
  }
}

// Calls `found` with the type of each request in `bytes`; not for what keeps a session: its opening
// and closing, pings, heartbeats, watches set again.
template <class Found>
void for_each_request(std::string_view bytes, Found found) {
  constexpr std::int32_t kLongest = 1 << 24;
  while (bytes.size() >= 12) {
    // The library sends the length of a request by itself, so a chunk may begin after it. What
    // comes then is a number that counts up from the seconds since 1970.
    const std::int32_t first = number_at(bytes, 0);
    const bool has_length = first >= 8 && first < kLongest;
    if (has_length) bytes.remove_prefix(4);
    const std::string_view body =
        bytes.substr(0, has_length ? static_cast<std::size_t>(first) : length_of_body(bytes));
    const std::int32_t xid = number_at(body, 0);
    const std::int32_t type = number_at(body, 4);
    const bool keeps_session =
        xid <= 0 || type == kCloseSession ||
        (body.find("/.lineage") != std::string_view::npos && type != kSetData);
    if (!keeps_session) found(type);
    bytes.remove_prefix(body.size());
  }
}

inline bool is_read(std::int32_t type) {
  return type == kExists || type == kGetData || type == kGetChildren || type == kSync;
}

inline bool is_any_request(std::string_view bytes) {
  bool any = false;
  for_each_request(bytes, [&](std::int32_t) { any = true; });
  return any;
}

// What changes something. A search that comes first is not the request whose fate is in question.
inline bool is_write(std::string_view bytes) {
  bool any = false;
  for_each_request(bytes, [&](std::int32_t type) { any |= !is_read(type); });
  return any;
}

// Sessions up to 20 s: they outlive a restart of the server.
inline rig::ZookeeperServer& long_server() {
  static rig::ZookeeperServer server({.min_session_ms = 1000, .max_session_ms = 20'000});
  return server;
}

class ProxiedZookeeper final : public ServerUnderTest {
 public:
  explicit ProxiedZookeeper(rig::IsRequest is_request = is_write)
      : proxy_(long_server().port(), std::move(is_request)) {}

  std::string url() override { return "zookeeper://" + long_server().address() + folder_; }
  std::string proxied_url() const { return "zookeeper://" + proxy_.address() + folder_; }
  std::unique_ptr<Store> open() override { return open_zookeeper(url()); }
  std::unique_ptr<Store> open_through_proxies() override { return open_zookeeper(proxied_url()); }
  std::vector<rig::TcpProxy*> proxies() override { return {&proxy_}; }
  rig::TcpProxy& proxy() { return proxy_; }
  const std::string& folder() const { return folder_; }
  void kill() override { long_server().kill(); }
  void start() override { long_server().start(); }
  bool tells_remaining() override { return false; }
  bool grants_outlive_restarts() override { return false; }
  // Its node stands before it has a slot.
  rig::IsRequest takes_permit() override {
    return [](std::string_view bytes) {
      bool any = false;
      for_each_request(bytes, [&](std::int32_t type) { any |= type == kMulti; });
      return any;
    };
  }

 private:
  const std::string folder_ = fresh_folder();
  rig::TcpProxy proxy_;
};

}  // namespace leasehold::testing
