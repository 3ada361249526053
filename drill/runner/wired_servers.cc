#include "wired_servers.h"

#include <algorithm>
#include <stdexcept>

#include "stores/src/module.h"

namespace leasehold::drill {
namespace {

using namespace std::chrono_literals;
using rig::TcpProxy;
using rig::WireFault;

bool of_the_wire(Fault fault) {
  return fault == Fault::cut || fault == Fault::delay || fault == Fault::lose_reply;
}

}  // namespace

bool has(const std::vector<Fault>& faults, Fault fault) {
  return std::find(faults.begin(), faults.end(), fault) != faults.end();
}

Wire::Wire(const std::vector<Fault>& faults)
    : wanted_(std::any_of(faults.begin(), faults.end(), of_the_wire)) {}

std::string Wire::address(std::uint16_t port, bool always) {
  if (!wanted_ && !always) return "127.0.0.1:" + std::to_string(port);
  proxies_.push_back(std::make_unique<TcpProxy>(port));
  return proxies_.back()->address();
}

void Wire::lead_to(std::uint16_t port) {
  proxies_.front()->retarget(port);
  proxies_.front()->cut();
}

void Wire::begin(Fault fault, Millis ttl, Chance& chance) {
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

bool Wire::end(Fault fault) {
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

void WiredServers::begin(Fault fault, Millis ttl, Chance& chance) {
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

bool WiredServers::end(Fault fault) {
  if (of_the_wire(fault)) return wire_.end(fault);
  if (fault == Fault::clock) {
    move_clock(0h);
  } else {
    start();
  }
  return true;
}

void WiredServers::kill_leader() {
  throw std::logic_error("there is no other to take over");
}
void WiredServers::move_clock(std::chrono::seconds) {
  throw std::logic_error("it has no such clock");
}

rig::ClockShim::Environment clock_environment(const std::vector<Fault>& faults,
                                              std::optional<rig::ClockShim>& clock) {
  if (!has(faults, Fault::clock)) return {};
  clock.emplace(module_path("clock_shim"));
  return clock->environment();
}

}  // namespace leasehold::drill
