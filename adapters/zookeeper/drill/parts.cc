// What a drill can do with ZooKeeper.
#include "adapters/zookeeper/rig/server.h"
#include "drill/runner/wired_servers.h"

namespace leasehold::zookeeper {
namespace {

using namespace drill;
using namespace std::chrono_literals;

class ZookeeperServers final : public WiredServers {
 public:
  explicit ZookeeperServers(const std::vector<Fault>& faults) : WiredServers(faults) {
    if (has(faults, Fault::failover)) {
      ensemble_.emplace();
    } else {
      alone_.emplace();
    }
    url_ = "zookeeper://";
    const std::size_t members = ensemble_ ? ensemble_->size() : 1;
    for (std::size_t i = 0; i < members; ++i) {
      url_ += (i == 0 ? "" : ",") + wire_.address(member(i).port());
    }
    url_ += "/drill";
  }

 private:
  rig::ZookeeperServer& member(std::size_t i) { return ensemble_ ? (*ensemble_)[i] : *alone_; }
  void kill(Chance& chance) override {
    down_ = chance.below(ensemble_ ? ensemble_->size() : 1);
    member(down_).kill();
  }
  void stop(Chance& chance) override {
    down_ = chance.below(ensemble_ ? ensemble_->size() : 1);
    member(down_).process().stop();
  }
  void kill_leader() override {
    down_ = ensemble_->leader();
    member(down_).kill();
  }
  void start() override { member(down_).process().start_without_waiting(); }

  std::optional<rig::ZookeeperServer> alone_;
  std::optional<rig::ZookeeperEnsemble> ensemble_;
  std::size_t down_ = 0;
};

}  // namespace

drill::Parts drill_parts() {
  return {
      .stores =
          {{.name = "zookeeper",
            .schemes = {"zookeeper"},
            .fence = "zookeeper",
            .shortest_ttl = 400ms,
            .start =
                [](const std::string&, const std::vector<Fault>& faults) {
                  return std::make_unique<ZookeeperServers>(faults);
                },
            .why_not = [](Fault fault) -> std::optional<std::string> {
              if (fault != Fault::clock) return std::nullopt;
              return "ZooKeeper counts sessions on Java's monotonic clock, which nobody can move";
            }}},
      .fences = {{.name = "zookeeper",
                  .schemes = {"zookeeper"},
                  .start =
                      [](const std::string&) {
                        return std::make_unique<ZookeeperServers>(std::vector<Fault>());
                      },
                  .open = in_drill_module("zookeeper")}}};
}

}  // namespace leasehold::zookeeper
