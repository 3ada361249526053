#include "adapters/etcd/rig/server.h"

#include <signal.h>

#include <chrono>
#include <stdexcept>

#include "leasehold/process/child.h"

namespace leasehold::rig {

using namespace std::chrono_literals;

namespace {

std::string lookup_health(std::uint16_t port) {
  return converse(port, "GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
}

}  // namespace

EtcdServer::EtcdServer(Options options) : EtcdServer(std::move(options), "one") {
  launch(peer(), /*wait=*/options_.healthy);
}

EtcdServer::EtcdServer(Options options, std::string name)
    : options_(std::move(options)), name_(std::move(name)) {}

bool EtcdServer::is_healthy() const {
  return lookup_health(metrics_.number()).find("\"health\":\"true\"") != std::string::npos;
}

void EtcdServer::launch(const std::string& cluster, bool wait) {
  const std::string scheme = options_.tls ? "https://" : "http://";
  const std::string peer_url = "http://" + peer_.address();
  // The heartbeat and election times allow leases of one second.
  std::vector<std::string> argv = {"etcd",
                                   "--name",
                                   name_,
                                   "--data-dir",
                                   folder_.file("data"),
                                   "--listen-client-urls",
                                   scheme + address(),
                                   "--advertise-client-urls",
                                   scheme + address(),
                                   "--listen-peer-urls",
                                   peer_url,
                                   "--initial-advertise-peer-urls",
                                   peer_url,
                                   "--listen-metrics-urls",
                                   "http://" + metrics_.address(),
                                   "--initial-cluster",
                                   cluster,
                                   "--initial-cluster-state",
                                   "new",
                                   "--heartbeat-interval",
                                   "50",
                                   "--election-timeout",
                                   "500",
                                   "--logger",
                                   "zap",
                                   "--log-level",
                                   "warn"};
  if (options_.tls) {
    for (const std::string& word : {std::string("--cert-file"), options_.tls->certificate,
                                    std::string("--key-file"), options_.tls->key}) {
      argv.push_back(word);
    }
    if (!options_.tls->client_ca.empty()) {
      argv.insert(argv.end(), {"--client-cert-auth", "--trusted-ca-file", options_.tls->client_ca});
    }
  }
  argv.insert(argv.end(), options_.more.begin(), options_.more.end());
  ServerProcess::Plan plan{.argv = std::move(argv),
                           .log = folder_.file("log"),
                           .answers = [this, wait] { return !wait || is_healthy(); }};
  process_ = std::make_unique<ServerProcess>(std::move(plan));
}

EtcdctlResult EtcdServer::ctl(std::vector<std::string> arguments) const {
  std::vector<std::string> argv = {"etcdctl", "--endpoints", address()};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  auto child = process::Child::start({.argv = std::move(argv),
                                      .environment = {{"ETCDCTL_API", "3"}},
                                      .in = process::Null{},
                                      .out = process::Piped{},
                                      .err = process::ToFile{folder_.file("ctl.err"), true},
                                      .parent_death_signal = SIGKILL});
  if (!child) throw std::runtime_error(child.error().message);
  std::string out = process::read_all(child->out().get(), process::within(30s));
  return {child->wait().shell_status(), std::move(out)};
}

EtcdCluster::EtcdCluster(std::size_t members) {
  std::string cluster;
  for (std::size_t i = 0; i < members; ++i) {
    members_.push_back(std::unique_ptr<EtcdServer>(new EtcdServer({}, "n" + std::to_string(i))));
    cluster += (i == 0 ? "" : ",") + members_.back()->peer();
  }
  // One alone is not healthy: all are started before the first is asked.
  for (auto& member : members_) member->launch(cluster, /*wait=*/false);
  leader();
}

std::size_t EtcdCluster::leader() {
  const auto give_up = std::chrono::steady_clock::now() + 60s;
  while (std::chrono::steady_clock::now() < give_up) {
    for (std::size_t i = 0; i < members_.size(); ++i) {
      // "address, member id, version, db size, is leader, ..."
      const EtcdctlResult status = members_[i]->ctl({"endpoint", "status", "--dial-timeout=1s"});
      if (status.status == 0 && status.out.find(", true,") != std::string::npos &&
          members_[i]->is_healthy()) {
        return i;
      }
    }
  }
  throw std::runtime_error("the etcd cluster finds no leader");
}

}  // namespace leasehold::rig
