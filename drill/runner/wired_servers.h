// A store's servers with a network in front of them: what most technologies have in common.
#pragma once

#include <optional>

#include "parts.h"
#include "rig/clock_shim.h"
#include "rig/tcp_proxy.h"

namespace leasehold::drill {

bool has(const std::vector<Fault>& faults, Fault fault);

// The network in front of some servers: there only if a fault needs it, since it costs time.
class Wire {
 public:
  explicit Wire(const std::vector<Fault>& faults);

  // The address by which workers reach the server at this port. `always`: by way of a proxy, so
  // that lead_to() can make another server of it.
  std::string address(std::uint16_t port, bool always = false);
  void lead_to(std::uint16_t port);

  void begin(Fault fault, Millis ttl, Chance& chance);
  bool end(Fault fault);

 private:
  const bool wanted_;
  std::vector<std::unique_ptr<rig::TcpProxy>> proxies_;
  rig::TcpProxy* armed_ = nullptr;
};

class WiredServers : public Place {
 public:
  explicit WiredServers(const std::vector<Fault>& faults) : wire_(faults) {}

  std::string url() const final { return url_; }
  void begin(Fault fault, Millis ttl, Chance& chance) final;
  bool end(Fault fault) final;

 protected:
  virtual void kill(Chance& chance) = 0;
  virtual void stop(Chance& chance) = 0;
  virtual void start() = 0;    // what kill(), stop() or kill_leader() ended
  virtual void kill_leader();  // of several, and another takes over
  virtual void move_clock(std::chrono::seconds by);

  Wire wire_;
  std::string url_;
};

// The environment of a server, if its clock is to be moved.
rig::ClockShim::Environment clock_environment(const std::vector<Fault>& faults,
                                              std::optional<rig::ClockShim>& clock);

}  // namespace leasehold::drill
