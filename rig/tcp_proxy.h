// A proxy on loopback that does to a connection what a network does: delay, cut, lose a reply.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "leasehold/time.h"
#include "rig/port.h"

namespace leasehold::rig {

// What happens at the chosen request.
enum class WireFault {
  cut_before,  // it never reaches the server, and the connection is reset
  cut_during,  // half of its bytes do
  cut_after,   // it does, and the connection is reset before the reply
  lose_reply,  // it does, and what the server says on this connection is swallowed until cut()
};
std::string to_string(WireFault fault);

// Which of the bytes that a client sends in one go are a request; a protocol's pings are not.
using IsRequest = std::function<bool(std::string_view)>;

// Thread safe. Everything runs on one thread of its own.
class TcpProxy {
 public:
  // `host` is an IPv4 address; `at`, where it listens, "127.0.0.1" or "::1".
  explicit TcpProxy(std::uint16_t target, IsRequest is_request = {}, std::string host = "127.0.0.1",
                    const std::string& at = "127.0.0.1");
  ~TcpProxy();  // cuts everything

  std::uint16_t port() const;
  std::string address() const;

  // The next request for which `chosen` holds (none given: the next one) suffers the fault; once.
  void arm(WireFault fault, IsRequest chosen = {});
  // True when the fault has happened; false after `timeout`.
  bool wait_for_fault(Millis timeout);
  void disarm();

  // Resets every connection now; new ones are accepted.
  void cut();
  // While on: connections are reset, new ones too: the server is not there.
  void refuse(bool on);
  // While on: nothing passes in either direction, and nothing is lost: a hanging network.
  void hold(bool on);
  // New connections go to this port from now on; open ones stay.
  void retarget(std::uint16_t target);
  // Delays each direction by this much.
  void delay(Millis each_way);

  // Requests that were answered, over all connections: a request counts when the server's first
  // bytes after it arrive; several before one answer count as one.
  std::size_t round_trips() const;
  // Requests alone, however they were answered.
  std::size_t requests() const;
  std::size_t connections() const;  // accepted so far
  // Returns when one has been accepted.
  void wait_for_connection();

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

}  // namespace leasehold::rig
