// What a drill can do with etcd.
#include "adapters/etcd/rig/server.h"
#include "drill/runner/wired_servers.h"

namespace leasehold::etcd {
namespace {

using namespace drill;
using namespace std::chrono_literals;

class EtcdServers final : public WiredServers {
 public:
  explicit EtcdServers(const std::vector<Fault>& faults)
      : WiredServers(faults), cluster_(has(faults, Fault::failover) ? 3 : 1) {
    url_ = "etcd://";
    for (std::size_t i = 0; i < cluster_.size(); ++i) {
      url_ += (i == 0 ? "" : ",") + wire_.address(cluster_[i].port());
    }
  }

 private:
  void kill(Chance& chance) override {
    down_ = chance.below(cluster_.size());
    cluster_[down_].kill();
  }
  void stop(Chance& chance) override {
    down_ = chance.below(cluster_.size());
    cluster_[down_].stop();
  }
  void kill_leader() override {
    down_ = cluster_.leader();
    cluster_[down_].kill();
  }
  void start() override { cluster_[down_].start_without_waiting(); }

  rig::EtcdCluster cluster_;
  std::size_t down_ = 0;
};

}  // namespace

drill::Parts drill_parts() {
  return {.stores = {{.name = "etcd",
                      .schemes = {"etcd"},
                      .fence = "etcd",
                      .shortest_ttl = 1s,
                      .start =
                          [](const std::string&, const std::vector<Fault>& faults) {
                            return std::make_unique<EtcdServers>(faults);
                          },
                      .why_not = [](Fault fault) -> std::optional<std::string> {
                        if (fault != Fault::clock) return std::nullopt;
                        return "etcd is a Go program, which asks the kernel for the time and not "
                               "the C library";
                      }}},
          .fences = {{.name = "etcd",
                      .schemes = {"etcd"},
                      .start =
                          [](const std::string&) {
                            return std::make_unique<EtcdServers>(std::vector<Fault>());
                          },
                      .open = in_drill_module("etcd")}}};
}

}  // namespace leasehold::etcd
