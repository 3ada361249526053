// Real etcd servers on loopback.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "rig/port.h"
#include "rig/server_process.h"
#include "rig/temp_folder.h"

namespace leasehold::rig {

// Files for TLS; `client_ca` makes the server ask for a certificate.
struct EtcdTls {
  std::string certificate;
  std::string key;
  std::string client_ca = {};
};

// What etcdctl printed, and how it ended.
struct EtcdctlResult {
  int status;
  std::string out;  // and err
};

// One member of a cluster. Its data is in a folder of its own, which is deleted with it. Leases can
// be as short as a second.
class EtcdServer {
 public:
  struct Options {
    std::optional<EtcdTls> tls = {};
    std::vector<std::string> more = {};  // arguments
    bool healthy = true;                 // wait until it says so; a learner never does
  };
  // A cluster of one.
  EtcdServer() : EtcdServer(Options{}) {}
  explicit EtcdServer(Options options);

  std::uint16_t port() const { return client_.number(); }
  std::string address() const { return client_.address(); }
  std::string metrics_address() const { return metrics_.address(); }  // plain HTTP/1

  void kill() { process_->kill(); }
  void stop() { process_->stop(); }
  void start() { process_->start(); }
  void start_without_waiting() { process_->start_without_waiting(); }
  void freeze() { process_->freeze(); }
  void thaw() { process_->thaw(); }
  std::string log() const { return process_->log(); }

  // Runs etcdctl on this member, to its end.
  EtcdctlResult ctl(std::vector<std::string> arguments) const;

 private:
  friend class EtcdCluster;
  EtcdServer(Options options, std::string name);
  std::string peer() const { return name_ + "=http://" + peer_.address(); }
  void launch(const std::string& cluster, bool wait);
  bool is_healthy() const;

  const Options options_;
  const std::string name_;
  Port client_ = Port::take();
  Port peer_ = Port::take();
  Port metrics_ = Port::take();
  TempFolder folder_;
  std::unique_ptr<ServerProcess> process_;
};

class EtcdCluster {
 public:
  explicit EtcdCluster(std::size_t members = 3);

  std::size_t size() const { return members_.size(); }
  EtcdServer& operator[](std::size_t i) { return *members_[i]; }
  // The number of the member that leads now; waits until there is one.
  std::size_t leader();
  std::string addresses() const { return addresses_of(members_); }

 private:
  std::vector<std::unique_ptr<EtcdServer>> members_;
};

}  // namespace leasehold::rig
