#include "adapters/zookeeper/rig/server.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <thread>

namespace leasehold::rig {

using namespace std::chrono_literals;

ZookeeperServer::ZookeeperServer(Unstarted, const ZookeeperOptions& options) : options_(options) {
  if (options_.data.empty()) options_.data = folder_.file("data");
  std::filesystem::create_directories(options_.data);
}

ZookeeperServer::ZookeeperServer(const ZookeeperOptions& options)
    : ZookeeperServer(Unstarted{}, options) {
  write_config(0, "");
  launch();
  process().wait_until_it_answers();
}

void ZookeeperServer::write_config(int id, const std::string& members) {
  std::ofstream config(folder_.file("zoo.cfg"));
  config << "tickTime=" << options_.tick_ms << "\n"
         << "initLimit=50\nsyncLimit=10\n"
         << "minSessionTimeout=" << options_.min_session_ms << "\n"
         << "maxSessionTimeout=" << options_.max_session_ms << "\n"
         << "dataDir=" << options_.data << "\n"
         << "clientPort=" << client_.str() << "\nclientPortAddress=127.0.0.1\n"
         << "maxClientCnxns=0\nadmin.enableServer=false\n4lw.commands.whitelist=*\n"
         << members;
  for (const std::string& line : options_.more) config << line << "\n";
  if (id > 0) std::ofstream(options_.data + "/myid") << id << "\n";
}

void ZookeeperServer::launch() {
  const std::string jars = "/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar";
  ServerProcess::Plan plan{
      .argv = {"java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
               "-Dzookeeper.extendedTypesEnabled=true",
               "-Dznode.container.checkIntervalMs=" + std::to_string(options_.container_check_ms),
               std::string("-Dreadonlymode.enabled=") +
                   (options_.read_only_without_majority ? "true" : "false"),
               "-cp", jars, "org.apache.zookeeper.server.quorum.QuorumPeerMain",
               folder_.file("zoo.cfg")},
      .log = folder_.file("log"),
      // One of several cannot serve before the others are launched too.
      .answers = [this] { return !process_ || !mode().empty(); }};
  process_.emplace(std::move(plan));
}

std::string ZookeeperServer::mode() const {
  const std::string answer = converse(client_.number(), "srvr");
  const std::size_t at = answer.find("Mode: ");
  if (at == std::string::npos) return "";
  return answer.substr(at + 6, answer.find('\n', at) - at - 6);
}

ZookeeperEnsemble::ZookeeperEnsemble(const ZookeeperOptions& options) {
  std::string members = "standaloneEnabled=false\n";
  for (std::size_t i = 0; i < options.members; ++i) {
    servers_.emplace_back(new ZookeeperServer(ZookeeperServer::Unstarted{}, options));
    members += "server." + std::to_string(i + 1) + "=127.0.0.1:" + servers_[i]->peer_.str() + ":" +
               servers_[i]->election_.str() + "\n";
  }
  for (std::size_t i = 0; i < options.members; ++i) {
    servers_[i]->write_config(static_cast<int>(i + 1), members);
    servers_[i]->launch();
  }
  wait_until_it_serves();
}

std::size_t ZookeeperEnsemble::leader() {
  const auto give_up = std::chrono::steady_clock::now() + 60s;
  while (std::chrono::steady_clock::now() < give_up) {
    for (std::size_t i = 0; i < servers_.size(); ++i) {
      if (servers_[i]->process().runs() && servers_[i]->mode() == "leader") return i;
    }
    std::this_thread::sleep_for(20ms);  // there is no event for it
  }
  throw std::runtime_error("the ensemble has no leader");
}

void ZookeeperEnsemble::kill() {
  for (const auto& it : servers_) it->kill();
}

void ZookeeperEnsemble::start() {
  for (const auto& it : servers_) {
    if (!it->process().runs()) it->process().start_without_waiting();
  }
  wait_until_it_serves();
}

void ZookeeperEnsemble::wait_until_it_serves() {
  for (const auto& it : servers_) it->process().wait_until_it_answers();
}

}  // namespace leasehold::rig
