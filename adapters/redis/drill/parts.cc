// What a drill can do with Redis.
#include <thread>

#include "adapters/redis/rig/server.h"
#include "drill/runner/wired_servers.h"

namespace leasehold::redis {
namespace {

using namespace drill;
using namespace std::chrono_literals;

// For a failover: a primary, and a replica that gets everything a little later.
class RedisServers final : public WiredServers {
 public:
  explicit RedisServers(const std::vector<Fault>& faults)
      : WiredServers(faults), environment_(clock_environment(faults, clock_)) {
    primary_ = std::make_unique<rig::RedisServer>(options());
    const bool failover = has(faults, Fault::failover);
    if (failover) add_replica();
    url_ = "redis://" + wire_.address(primary_->port(), failover);
  }

 private:
  rig::RedisServer::Options options() const {
    rig::RedisServer::Options options;
    options.environment = environment_;
    options.more = {"--repl-diskless-sync-delay", "0"};
    return options;
  }
  void add_replica() {
    rig::RedisServer::Options of_replica = options();
    of_replica.more.insert(of_replica.more.end(),
                           {"--replicaof", "127.0.0.1", std::to_string(primary_->port())});
    replica_ = std::make_unique<rig::RedisServer>(of_replica);
    while (replica_->cli({"INFO", "replication"}).find("master_link_status:up") ==
           std::string::npos) {
      std::this_thread::sleep_for(10ms);
    }
  }
  void kill(Chance&) override { primary_->process().kill(); }
  void stop(Chance&) override { primary_->process().stop(); }
  void kill_leader() override {
    primary_->process().kill();
    replica_->cli({"REPLICAOF", "NO", "ONE"});
    primary_ = std::move(replica_);
    wire_.lead_to(primary_->port());
    failed_over_ = true;
  }
  void start() override {
    if (failed_over_) {
      failed_over_ = false;
      return add_replica();
    }
    primary_->process().start();
    // One that was promoted comes back as the replica that its command line says.
    primary_->cli({"REPLICAOF", "NO", "ONE"});
  }
  void move_clock(std::chrono::seconds by) override { clock_->move(by); }

  std::optional<rig::ClockShim> clock_;
  const rig::ClockShim::Environment environment_;
  std::unique_ptr<rig::RedisServer> primary_;
  std::unique_ptr<rig::RedisServer> replica_;
  bool failed_over_ = false;
};

class RedlockServers final : public WiredServers {
 public:
  explicit RedlockServers(const std::vector<Fault>& faults) : WiredServers(faults) {
    rig::RedisServer::Options options;
    options.environment = clock_environment(faults, clock_);
    url_ = "redlock://";
    for (int i = 0; i < 3; ++i) {
      nodes_.push_back(std::make_unique<rig::RedisServer>(options));
      url_ += (i == 0 ? "" : ",") + wire_.address(nodes_.back()->port());
    }
  }

 private:
  void kill(Chance& chance) override { some(chance).process().kill(); }
  void stop(Chance& chance) override { some(chance).process().stop(); }
  void start() override { nodes_[down_]->process().start(); }
  void move_clock(std::chrono::seconds by) override { clock_->move(by); }
  rig::RedisServer& some(Chance& chance) {
    down_ = chance.below(nodes_.size());
    return *nodes_[down_];
  }

  std::optional<rig::ClockShim> clock_;
  std::vector<std::unique_ptr<rig::RedisServer>> nodes_;
  std::size_t down_ = 0;
};

}  // namespace

drill::Parts drill_parts() {
  return {
      .stores =
          {{.name = "redis",
            .schemes = {"redis", "rediss"},
            .fence = "redis",
            .start =
                [](const std::string&, const std::vector<Fault>& faults) {
                  return std::make_unique<RedisServers>(faults);
                },
            .failover_note =
                "Redis answers before its replica has a write, so a failover loses some: locks, "
                "claims and the data alike; a fence in another place (--fence sqlite) keeps its "
                "own"},
           {.name = "redlock",
            .schemes = {"redlock"},
            .fence = "redis",
            .keeps_fence = false,
            .shortest_ttl = 200ms,
            .start =
                [](const std::string&, const std::vector<Fault>& faults) {
                  return std::make_unique<RedlockServers>(faults);
                },
            .why_not = [](Fault fault) -> std::optional<std::string> {
              if (fault != Fault::failover) return std::nullopt;
              return "a Redlock node has no replica: kill-server is what happens to it";
            }}},
      .fences = {{.name = "redis",
                  .schemes = {"redis", "rediss"},
                  .has_claims = true,
                  .start =
                      [](const std::string&) {
                        return std::make_unique<RedisServers>(std::vector<Fault>());
                      },
                  .open = in_drill_module("redis")}}};
}

}  // namespace leasehold::redis
