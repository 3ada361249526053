// ZooKeeper servers of a test.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rig/port.h"
#include "rig/server_process.h"
#include "rig/temp_folder.h"

namespace leasehold::rig {

struct ZookeeperOptions {
  int tick_ms = 200;
  int min_session_ms = 400;
  int max_session_ms = 4000;
  std::string data = {};                    // a folder for the data; empty: a temporary one
  bool read_only_without_majority = false;  // it still answers reads
  int container_check_ms = 60'000;          // how often empty containers are removed
  std::size_t members = 3;                  // of an ensemble
  std::vector<std::string> more = {};  // lines of zoo.cfg; of two with one name the last counts
};

// One server by itself, or one of several that elect a leader. Throws std::runtime_error if it does
// not start.
class ZookeeperServer {
 public:
  // Alone; returns when it serves.
  explicit ZookeeperServer(const ZookeeperOptions& options = {});

  std::string address() const { return client_.address(); }
  std::uint16_t port() const { return client_.number(); }

  void kill() { process().kill(); }
  void start() { process().start(); }  // on the same port, with the same data
  void freeze() { process().freeze(); }
  void thaw() { process().thaw(); }
  ServerProcess& process() { return *process_; }

  // "leader", "follower", "standalone"; empty if it does not serve.
  std::string mode() const;

 private:
  friend class ZookeeperEnsemble;
  struct Unstarted {};
  ZookeeperServer(Unstarted, const ZookeeperOptions& options);
  void write_config(int id, const std::string& members);
  void launch();

  ZookeeperOptions options_;
  TempFolder folder_;
  Port client_ = Port::take();
  Port peer_ = Port::take();
  Port election_ = Port::take();
  std::optional<ServerProcess> process_;
};

// Three servers, or as many as the options say.
class ZookeeperEnsemble {
 public:
  explicit ZookeeperEnsemble(const ZookeeperOptions& options = {});

  ZookeeperServer& operator[](std::size_t i) { return *servers_[i]; }
  std::size_t size() const { return servers_.size(); }
  std::string addresses() const { return addresses_of(servers_); }
  std::size_t leader();  // throws std::runtime_error if there is none within a minute
  void kill();
  void start();  // all of them; returns when they serve
  void wait_until_it_serves();

 private:
  std::vector<std::unique_ptr<ZookeeperServer>> servers_;
};

}  // namespace leasehold::rig
