#include "rig/redis.h"

#include <stdexcept>

#include "leasehold/process/io.h"

namespace leasehold::rig {

using namespace std::chrono_literals;

std::string output_of(std::vector<std::string> argv) {
  process::Command command;
  command.argv = std::move(argv);
  command.in = process::Null{};
  command.out = process::Piped{};
  command.err = process::Piped{};
  auto child = process::Child::start(command);
  if (!child) throw std::runtime_error(child.error().message);
  std::string said = process::read_all(child->out().get(), process::within(30s));
  const std::string complaint = process::read_all(child->err().get(), process::within(30s));
  const auto ended = child->wait_for(30s);
  if (!ended || ended->shell_status() != 0) {
    throw std::runtime_error(command.argv.front() + " failed: " + said + complaint);
  }
  while (said.ends_with('\n')) said.pop_back();
  return said;
}

void make_certificates(const TempFolder& folder, const std::string& names) {
  const auto openssl = [](std::vector<std::string> words) {
    words.insert(words.begin(), "openssl");
    output_of(std::move(words));
  };
  const std::string curve = "ec_paramgen_curve:prime256v1";
  openssl({"req", "-x509", "-newkey", "ec", "-pkeyopt", curve, "-nodes", "-days", "2", "-subj",
           "/CN=leasehold test authority", "-keyout", folder.file("ca.key"), "-out",
           folder.file("ca.crt")});
  openssl({"req",
           "-x509",
           "-newkey",
           "ec",
           "-pkeyopt",
           curve,
           "-nodes",
           "-days",
           "2",
           "-subj",
           "/CN=leasehold test server",
           "-addext",
           "subjectAltName=" + names,
           "-addext",
           "basicConstraints=critical,CA:FALSE",
           "-CA",
           folder.file("ca.crt"),
           "-CAkey",
           folder.file("ca.key"),
           "-keyout",
           folder.file("server.key"),
           "-out",
           folder.file("server.crt")});
}

RedisServer::RedisServer(Options options) : options_(std::move(options)) {
  std::vector<std::string> argv = {
      "redis-server", "--bind", "127.0.0.1",   "--dir", folder_.path().string(),
      "--save",       "",       "--daemonize", "no"};
  const auto add = [&argv](std::vector<std::string> words) {
    argv.insert(argv.end(), words.begin(), words.end());
  };
  if (options_.durable) add({"--appendonly", "yes", "--appendfsync", "always"});
  if (options_.tls) {
    make_certificates(folder_, "IP:127.0.0.1,DNS:localhost");
    add({"--port", "0", "--tls-port", port_.str(), "--tls-cert-file", certificate(),
         "--tls-key-file", key(), "--tls-ca-cert-file", ca(), "--tls-auth-clients",
         options_.demands_certificates ? "yes" : "optional"});
    options_.cli.insert(options_.cli.end(),
                        {"--tls", "--cacert", ca(), "--cert", certificate(), "--key", key()});
  } else {
    add({"--port", port_.str()});
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
