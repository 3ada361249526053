// What a drill can do with PostgreSQL.
#include <thread>

#include "adapters/postgres/rig/server.h"
#include "drill/runner/wired_servers.h"

namespace leasehold::postgres {
namespace {

using namespace drill;
using namespace std::chrono_literals;

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

  std::optional<rig::ClockShim> clock_;
  const rig::ClockShim::Environment environment_;
  std::unique_ptr<rig::PostgresServer> primary_;
  std::unique_ptr<rig::PostgresServer> standby_;
  bool failed_over_ = false;
};

}  // namespace

drill::Parts drill_parts() {
  const auto start = [](bool advisory) {
    return [advisory](const std::string&, const std::vector<Fault>& faults) {
      return std::make_unique<PostgresServers>(faults, advisory);
    };
  };
  return {
      .stores = {{.name = "postgres",
                  .schemes = {"postgres", "postgresql"},
                  .fence = "postgres",
                  .start = start(false)},
                 {.name = "postgres-advisory",
                  .schemes = {},
                  .fence = "postgres",
                  .shortest_ttl = 200ms,
                  .start = start(true)}},
      .fences = {{.name = "postgres",
                  .schemes = {"postgres", "postgresql"},
                  .has_claims = true,
                  .start = [start](const std::string& folder) { return start(false)(folder, {}); },
                  .open = in_drill_module("postgres")}}};
}

}  // namespace leasehold::postgres
