#include "adapters/redis/rig/server.h"

#include <stdexcept>

#include "rig/certificates.h"
#include "rig/output_of.h"

namespace leasehold::rig {

RedisServer::RedisServer(Options options) : options_(std::move(options)) {
  std::vector<std::string> argv = {
      "redis-server", "--bind", "127.0.0.1",   "--dir", folder_.path().string(),
      "--save",       "",       "--daemonize", "no"};
  const auto add = [&argv](std::vector<std::string> words) {
    argv.insert(argv.end(), words.begin(), words.end());
  };
  if (options_.durable) add({"--appendonly", "yes", "--appendfsync", "always"});
  if (options_.tls) {
    make_certificate(folder_, "ca");
    make_certificate(folder_, "server", "subjectAltName=IP:127.0.0.1,DNS:localhost", "ca");
    add({"--port", "0", "--tls-port", port_.str(), "--tls-cert-file", certificate(),
         "--tls-key-file", key(), "--tls-ca-cert-file", ca(), "--tls-auth-clients",
         options_.demands_certificates ? "yes" : "optional"});
    options_.cli.insert(options_.cli.end(),
                        {"--tls", "--cacert", ca(), "--cert", certificate(), "--key", key()});
  } else {
    add({"--port", port_.str()});
  }
  if (options_.cluster) {
    cluster_port_ = Port::take();
    add({"--cluster-enabled", "yes", "--cluster-port", cluster_port_->str()});
  }
  add(options_.more);
  process_ =
      std::make_unique<ServerProcess>(ServerProcess::Plan{.argv = std::move(argv),
                                                          .log = folder_.file("log"),
                                                          .environment = options_.environment,
                                                          .answers = [this] { return answers(); }});
}

bool RedisServer::answers() const {
  if (!accepts(port())) return false;
  try {
    return cli({"PING"}) == "PONG";
  } catch (const std::runtime_error&) {
    return false;
  }
}

std::string RedisServer::cli(std::vector<std::string> words) const {
  std::vector<std::string> argv = {"redis-cli", "-h",        "127.0.0.1",
                                   "-p",        port_.str(), "--no-auth-warning"};
  argv.insert(argv.end(), options_.cli.begin(), options_.cli.end());
  argv.insert(argv.end(), words.begin(), words.end());
  return output_of(std::move(argv));
}

}  // namespace leasehold::rig
