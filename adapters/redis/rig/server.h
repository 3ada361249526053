// redis-server processes of a test.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rig/port.h"
#include "rig/server_process.h"
#include "rig/temp_folder.h"

namespace leasehold::rig {

// One redis-server in a folder of its own. By default it writes every command to the disk before
// it answers, so that a killed one has its locks when it starts again.
class RedisServer {
 public:
  struct Options {
    bool durable = true;
    bool cluster = false;                // of this node alone, without slots
    bool tls = false;                    // the port speaks TLS alone; certificates are made
    bool demands_certificates = false;   // of its clients; with tls
    std::vector<std::string> more = {};  // further arguments: {"--requirepass", "secret"}
    std::vector<std::string> cli = {};   // what redis-cli needs besides: {"-a", "secret"}
    std::vector<std::pair<std::string, std::optional<std::string>>> environment = {};
  };
  RedisServer() : RedisServer(Options{}) {}
  explicit RedisServer(Options options);

  std::uint16_t port() const { return port_.number(); }
  std::string address() const { return port_.address(); }
  std::string url() const { return "redis://" + address(); }
  ServerProcess& process() { return *process_; }

  // What redis-cli prints for these words, without the last newline.
  std::string cli(std::vector<std::string> words) const;

  // The certificate authority, and a certificate that it signed for 127.0.0.1 and localhost; with
  // tls.
  std::string ca() const { return folder_.file("ca.crt"); }
  std::string certificate() const { return folder_.file("server.crt"); }
  std::string key() const { return folder_.file("server.key"); }

 private:
  bool answers() const;

  TempFolder folder_;
  Port port_ = Port::take();
  std::optional<Port> cluster_port_;  // by default port + 10000, which a client may have
  Options options_;
  std::unique_ptr<ServerProcess> process_;
};

}  // namespace leasehold::rig
