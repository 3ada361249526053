// A Redis server for the conformance suites: one process for all cases, emptied for each.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "adapters/redis/rig/server.h"
#include "leasehold/redis/adapter.h"
#include "leasehold/url.h"
#include "testing/store_wire_conformance.h"

namespace leasehold::testing {

// Opens what the URL names, or throws.
inline std::unique_ptr<Store> open_url(const std::string& text) {
  const Url url = Url::parse(text).value();
  for (const Adapter& adapter : redis::adapters()) {
    if (adapter.scheme != url.scheme) continue;
    auto store = adapter.open_store(url, {});
    if (!store) throw std::runtime_error(to_string(store.error()));
    return std::move(*store);
  }
  throw std::runtime_error("no adapter for " + text);
}

// Greetings, pings and subscriptions are no requests.
inline bool is_script_call(std::string_view bytes) {
  return bytes.find("\r\nEVAL") != std::string_view::npos ||
         bytes.find("\r\nHGET\r\n") != std::string_view::npos ||
         bytes.find("\r\nSCAN\r\n") != std::string_view::npos ||
         bytes.find("\r\nSET\r\n") != std::string_view::npos;
}

class RedisUnderTest final : public ServerUnderTest {
 public:
  RedisUnderTest() {
    if (!server().process().runs()) server().process().start();
    server().cli({"FLUSHALL"});
  }

  std::string url() override { return server().url(); }
  std::unique_ptr<Store> open() override { return open_url(url()); }
  std::unique_ptr<Store> open_through_proxies() override {
    return open_url("redis://" + proxy_.address());
  }
  std::vector<rig::TcpProxy*> proxies() override { return {&proxy_}; }
  void kill() override { server().process().kill(); }
  void start() override { server().process().start(); }

  static rig::RedisServer& server() {
    static rig::RedisServer shared;
    return shared;
  }

 private:
  rig::TcpProxy proxy_{server().port(), is_script_call};
};

// Five independent servers. A node has much time here: the machine of a test may be slow, and the
// suites look at replies that are lost for as long as they like.
class RedlockUnderTest final : public ServerUnderTest {
 public:
  static constexpr std::size_t kNodes = 5;

  RedlockUnderTest() {
    for (auto& node : nodes()) {
      if (!node->process().runs()) node->process().start();
      node->cli({"FLUSHALL"});
      proxies_.push_back(std::make_unique<rig::TcpProxy>(node->port(), is_script_call));
    }
  }

  std::string url() override {
    return "redlock://" + rig::addresses_of(nodes()) + "?node_timeout=20000";
  }
  std::string proxied_url(const std::string& options = "?node_timeout=20000") const {
    return "redlock://" + rig::addresses_of(proxies_) + options;
  }
  std::unique_ptr<Store> open() override { return open_url(url()); }
  std::unique_ptr<Store> open_through_proxies() override { return open_url(proxied_url()); }
  std::vector<rig::TcpProxy*> proxies() override {
    std::vector<rig::TcpProxy*> all;
    for (const auto& proxy : proxies_) all.push_back(proxy.get());
    return all;
  }
  void kill() override {
    for (const auto& node : nodes()) node->process().kill();
  }
  void start() override {
    for (const auto& node : nodes()) node->process().start();
  }

  static std::vector<std::unique_ptr<rig::RedisServer>>& nodes() {
    static std::vector<std::unique_ptr<rig::RedisServer>> shared = [] {
      std::vector<std::unique_ptr<rig::RedisServer>> made;
      for (std::size_t i = 0; i < kNodes; ++i) made.push_back(std::make_unique<rig::RedisServer>());
      return made;
    }();
    return shared;
  }

 private:
  std::vector<std::unique_ptr<rig::TcpProxy>> proxies_;
};

}  // namespace leasehold::testing
