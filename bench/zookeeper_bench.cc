// acquire + release on ZooKeeper, beside the same round trips with the C client: create, list,
// delete. And the hand-off among 32 waiters, beside the recipe: watch the predecessor.
#define THREADED
#include <zookeeper/zookeeper.h>

#include <algorithm>
#include <future>
#include <memory>
#include <vector>

#include "adapters/zookeeper/rig/server.h"
#include "bench/compare.h"
#include "bench/report.h"
#include "leasehold/client.h"
#include "leasehold/stores.h"

namespace {

using namespace leasehold;
using namespace leasehold::bench;

class Recipe {
 public:
  Recipe(const std::string& address, std::string folder) : folder_(std::move(folder)) {
    zoo_set_debug_level(static_cast<ZooLogLevel>(0));
    std::promise<void> connected;
    handle_ = zookeeper_init(address.c_str(), &Recipe::session_event, 4000, nullptr, &connected, 0);
    if (handle_ == nullptr) stop("the C client cannot connect");
    connected.get_future().wait();
    zoo_set_context(handle_, nullptr);
    zoo_create(handle_, folder_.c_str(), "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, nullptr, 0);
  }
  ~Recipe() { zookeeper_close(handle_); }
  Recipe(const Recipe&) = delete;

  void acquire() {
    char path[256];
    Stat stat{};
    check(zoo_create2(handle_, (folder_ + "/lock-").c_str(), "", 0, &ZOO_OPEN_ACL_UNSAFE,
                      ZOO_EPHEMERAL | ZOO_SEQUENCE, path, sizeof path, &stat));
    own_ = path;
    for (;;) {
      const std::string before = predecessor();
      if (before.empty()) return;
      std::promise<void> gone;
      Stat seen{};
      const int rc = zoo_wexists(handle_, before.c_str(), &Recipe::node_event, &gone, &seen);
      if (rc == ZNONODE) {
        // The watch stays behind for a node that is never made again; it must not outlive `gone`.
        zoo_remove_watches(handle_, before.c_str(), ZWATCHTYPE_DATA, &Recipe::node_event, &gone, 1);
        continue;
      }
      check(rc);
      gone.get_future().wait();
    }
  }
  void release() { check(zoo_delete(handle_, own_.c_str(), -1)); }

 private:
  static void session_event(zhandle_t* handle, int type, int state, const char*, void*) {
    auto* connected = static_cast<std::promise<void>*>(const_cast<void*>(zoo_get_context(handle)));
    if (type == ZOO_SESSION_EVENT && state == ZOO_CONNECTED_STATE && connected != nullptr) {
      connected->set_value();
    }
  }
  static void node_event(zhandle_t*, int type, int, const char*, void* context) {
    if (type == ZOO_DELETED_EVENT) static_cast<std::promise<void>*>(context)->set_value();
  }
  static void check(int rc) {
    if (rc != ZOK) stop(std::string("ZooKeeper, by hand: ") + zerror(rc));
  }

  std::string predecessor() {
    String_vector children{};
    check(zoo_get_children(handle_, folder_.c_str(), 0, &children));
    const std::string mine = own_.substr(folder_.size() + 1);
    std::string before;
    for (int i = 0; i < children.count; ++i) {
      const std::string child = children.data[i];
      if (child < mine && child > before) before = child;
    }
    deallocate_String_vector(&children);
    return before.empty() ? "" : folder_ + "/" + before;
  }

  const std::string folder_;
  zhandle_t* handle_ = nullptr;
  std::string own_;
};

Side by_hand(const std::string& address) {
  return alone("the same with the C client", [address](int worker) {
    return std::make_shared<Recipe>(address, "/by-hand-" + std::to_string(worker));
  });
}

Side recipe(const std::string& address) {
  return handing_over("watch the predecessor",
                      [address](int) { return std::make_shared<Recipe>(address, "/shared"); });
}

}  // namespace

int main(int argc, char** argv) {
  register_stores();
  const rig::ZookeeperServer server({.max_session_ms = 60'000});
  const std::string url = "zookeeper://" + server.address() + "/bench";
  for (const auto& [in_flight, target] : {std::pair(1, 1.0), {2, 1.0}, {50, 1.2}}) {
    compare("ZooKeeper: acquire + release, in flight: " + std::to_string(in_flight),
            one_client(url), by_hand(server.address()), effort_of(argc, argv, in_flight), target);
  }
  compare("ZooKeeper: hand-offs, waiters: 32", waiting_clients(url), recipe(server.address()),
          effort_of(argc, argv, 33), 1.0);
  return 0;
}
