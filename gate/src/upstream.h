// Connections to the service behind the gate.
#pragma once

#include <deque>
#include <memory>
#include <string>

#include "leasehold/error.h"
#include "leasehold/time.h"
#include "net.h"

namespace leasehold::gate {

struct UpstreamAddress {
  std::string host;
  std::string port;

  // "http://host:port", nothing more. Fails with `invalid`.
  [[nodiscard]] static Result<UpstreamAddress> parse(const std::string& url);
  std::string str() const { return host + ":" + port; }
};

// One thread.
class Upstream {
 public:
  Upstream(asio::io_context& io, Watch& watch, UpstreamAddress address, Millis connect_timeout,
           Millis pool_timeout);

  // An idle connection that is still open; null if there is none.
  std::unique_ptr<Connection> take_idle();
  // A new one; null if it cannot be had, and `error` says why.
  Async<std::unique_ptr<Connection>> connect(std::string& error);
  // For the next request. It has answered completely and nothing is left unread.
  void give_back(std::unique_ptr<Connection> connection);

  // Closes those that were idle too long.
  void sweep(NetTime now);
  void close_idle() { idle_.clear(); }

 private:
  struct Idle {
    std::unique_ptr<Connection> connection;
    NetTime since;
  };
  Async<std::vector<tcp::endpoint>> resolve(std::error_code& failed);

  asio::io_context& io_;
  Watch& watch_;
  UpstreamAddress address_;
  Millis connect_timeout_;
  Millis pool_timeout_;
  std::deque<Idle> idle_;  // the latest at the back
};

}  // namespace leasehold::gate
