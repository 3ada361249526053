// The server that the cases of one program share, each in a folder of its own.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>

#include "adapters/zookeeper/rig/server.h"
#include "leasehold/url.h"
#include "leasehold/zookeeper/adapter.h"

namespace leasehold::testing {

// Sessions of 1 to 2.5 s: long enough for a busy machine and to outlive a restart, short enough to
// see one expire.
inline rig::ZookeeperServer& one_server() {
  static rig::ZookeeperServer server({.min_session_ms = 1000, .max_session_ms = 2500});
  return server;
}

inline std::string fresh_folder() {
  static int count = 0;
  return "/tests/" + std::to_string(++count);
}

inline std::unique_ptr<Store> open_zookeeper(const std::string& url) {
  auto store = zookeeper::adapters().front().open_store(Url::parse(url).value(), {});
  if (!store) throw std::runtime_error(to_string(store.error()));
  return std::move(*store);
}

}  // namespace leasehold::testing
