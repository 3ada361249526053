#include "store_servers.h"

#include <algorithm>
#include <stdexcept>
#include <thread>

#include "clock_shim.h"
#include "rig/etcd.h"
#include "rig/postgres.h"
#include "rig/redis.h"
#include "rig/tcp_proxy.h"
#include "rig/zookeeper.h"

namespace leasehold::drill {
namespace {

using namespace std::chrono_literals;
using rig::TcpProxy;
using rig::WireFault;

bool has(const std::vector<Fault>& faults, Fault fault) {
  return std::find(faults.begin(), faults.end(), fault) != faults.end();
}

// The network in front of some servers: there only if a fault needs it, since it costs time.
class Wire {
 public:
  explicit Wire(const std::vector<Fault>& faults)
      : wanted_(has(faults, Fault::cut) || has(faults, Fault::delay) ||
                has(faults, Fault::lose_reply)) {}

  // The address by which workers reach the server at this port. `always`: by way of a proxy, so
  // that lead_to() can make another server of it.
  std::string address(std::uint16_t port, bool always = false) {
    if (!wanted_ && !always) return "127.0.0.1:" + std::to_string(port);
    proxies_.push_back(std::make_unique<TcpProxy>(port));
    return proxies_.back()->address();
  }

  void lead_to(std::uint16_t port) {
    proxies_.front()->retarget(port);
    proxies_.front()->cut();
  }

  void begin(Fault fault, Millis ttl, Chance& chance) {
    TcpProxy& some = *proxies_[chance.below(proxies_.size())];
    switch (fault) {
      case Fault::cut:
        for (const auto& proxy : proxies_) proxy->refuse(true);
        return;
      case Fault::delay:
        for (const auto& proxy : proxies_) proxy->delay(Millis(1 + chance.below(ttl.count() / 2)));
        return;
      case Fault::lose_reply:
        some.arm(WireFault::lose_reply);
        armed_ = &some;
        return;
      default:
        throw std::logic_error("a wire cannot do that");
    }
  }

  bool end(Fault fault) {
    if (fault != Fault::lose_reply) {
      for (const auto& proxy : proxies_) {
        proxy->refuse(false);
        proxy->delay(0ms);
      }
      return true;
    }
    const bool happened = armed_->wait_for_fault(0ms);
    armed_->disarm();
    armed_->cut();  // the connection that gets no answers would hang for ever
    return happened;
  }

 private:
  const bool wanted_;
  std::vector<std::unique_ptr<TcpProxy>> proxies_;
  TcpProxy* armed_ = nullptr;
};

bool of_the_wire(Fault fault) {
  return fault == Fault::cut || fault == Fault::delay || fault == Fault::lose_reply;
}

// What the technologies have in common.
class WiredServers : public StoreServers {
 public:
  explicit WiredServers(const std::vector<Fault>& faults) : wire_(faults) {}

  std::string url() const final { return url_; }

  void begin(Fault fault, Millis ttl, Chance& chance) final {
    if (of_the_wire(fault)) return wire_.begin(fault, ttl, chance);
    switch (fault) {
      case Fault::kill_server:
        return kill(chance);
      case Fault::restart_server:
        return stop(chance);
      case Fault::failover:
        return kill_leader();
      case Fault::clock:
        // An hour ahead, or an hour back.
        return move_clock(chance.one_in(2) ? 1h : -1h);
      default:
        throw std::logic_error("a server cannot do that");
    }
  }

  bool end(Fault fault) final {
    if (of_the_wire(fault)) return wire_.end(fault);
    if (fault == Fault::clock) {
      move_clock(0h);
    } else {
      start();
    }
    return true;
  }

 protected:
  virtual void kill(Chance& chance) = 0;
  virtual void stop(Chance& chance) = 0;
  virtual void start() = 0;  // what kill(), stop() or kill_leader() ended
  virtual void kill_leader() { throw std::logic_error("there is no other to take over"); }
  virtual void move_clock(std::chrono::seconds) { throw std::logic_error("it has no such clock"); }

  Wire wire_;
  std::string url_;
};

using Environment = ClockShim::Environment;

// The environment of a server, if its clock is to be moved.
Environment clock_environment(const std::vector<Fault>& faults, std::optional<ClockShim>& clock) {
  if (!has(faults, Fault::clock)) return {};
  clock.emplace();
  return clock->environment();
}

// For a failover: a primary, and a standby that has every commit before it is answered.
class PostgresServers final : public WiredServers {
 public:
  PostgresServers(const std::vector<Fault>& faults, bool advisory)
      : WiredServers(faults), environment_(clock_environment(faults, clock_)) {
    primary_ = std::make_unique<rig::PostgresServer>(options());
    const bool failover = has(faults, Fault::failover);
    if (failover) add_standby();
    url_ = "postgres://postgres@" + wire_.address(primary_->port(), failover) + "/postgres" +
           (advisory ? "?mode=advisory" : "");
  }

 private:
  rig::PostgresServer::Options options() const {
    rig::PostgresServer::Options options;
    options.settings = {"max_connections=600"};
    options.environment = environment_;
    return options;
  }
  void add_standby() {
    primary_->psql("ALTER SYSTEM SET synchronous_standby_names = 'standby'");
    rig::PostgresServer::Options of_standby = options();
    of_standby.standby_of = primary_.get();
    standby_ = std::make_unique<rig::PostgresServer>(of_standby);
    // From here on nothing is committed that the standby has not.
    primary_->psql("SELECT pg_reload_conf()");
    while (primary_->psql("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") !=
           "1") {
      std::this_thread::sleep_for(10ms);
    }
  }
  void kill(Chance&) override { primary_->kill(); }
  void stop(Chance&) override { primary_->stop(); }
  void kill_leader() override {
    primary_->kill();
    standby_->psql("ALTER SYSTEM RESET synchronous_standby_names");
    standby_->psql("SELECT pg_reload_conf()");
    standby_->psql("SELECT pg_promote()");
    primary_ = std::move(standby_);
    wire_.lead_to(primary_->port());
    failed_over_ = true;
  }
  void start() override {
    if (failed_over_) {
      failed_over_ = false;
      return add_standby();
    }
    primary_->start();
  }
  void move_clock(std::chrono::seconds by) override { clock_->move(by); }

  std::optional<ClockShim> clock_;
  const Environment environment_;
  std::unique_ptr<rig::PostgresServer> primary_;
  std::unique_ptr<rig::PostgresServer> standby_;
  bool failed_over_ = false;
};

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
  }
  void move_clock(std::chrono::seconds by) override { clock_->move(by); }

  std::optional<ClockShim> clock_;
  const Environment environment_;
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

  std::optional<ClockShim> clock_;
  std::vector<std::unique_ptr<rig::RedisServer>> nodes_;
  std::size_t down_ = 0;
};

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

const std::vector<std::string>& startable_stores() {
  static const std::vector<std::string> names = {
      "postgres", "postgres-advisory", "redis", "redlock", "etcd", "zookeeper"};
  return names;
}

std::optional<std::string> why_not(std::string_view technology, Fault fault) {
  if (fault == Fault::pause || fault == Fault::kill_holder) return std::nullopt;
  if (technology == "sqlite") return "SQLite has no server and no network";
  if (fault == Fault::clock && technology == "etcd") {
    return "etcd is a Go program, which asks the kernel for the time and not the C library";
  }
  if (fault == Fault::clock && technology == "zookeeper") {
    return "ZooKeeper counts sessions on Java's monotonic clock, which nobody can move";
  }
  if (fault == Fault::failover && technology == "redlock") {
    return "a Redlock node has no replica: kill-server is what happens to it";
  }
  return std::nullopt;
}

std::unique_ptr<StoreServers> start_servers(const std::string& technology,
                                            const std::vector<Fault>& faults) {
  if (technology == "postgres") return std::make_unique<PostgresServers>(faults, false);
  if (technology == "postgres-advisory") return std::make_unique<PostgresServers>(faults, true);
  if (technology == "redis") return std::make_unique<RedisServers>(faults);
  if (technology == "redlock") return std::make_unique<RedlockServers>(faults);
  if (technology == "etcd") return std::make_unique<EtcdServers>(faults);
  if (technology == "zookeeper") return std::make_unique<ZookeeperServers>(faults);
  throw std::logic_error("nobody can start " + technology);
}

}  // namespace leasehold::drill
