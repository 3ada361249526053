// The etcd servers that the cases of one program share, and each case's part of their keys.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "adapters/etcd/rig/server.h"
#include "leasehold/etcd/adapter.h"
#include "leasehold/random.h"
#include "rig/tcp_proxy.h"
#include "testing/store_wire_conformance.h"

namespace leasehold::testing {

// Whether these bytes of an HTTP/2 connection carry a message to etcd about a lock: no pings and
// acknowledgements; and nothing that only prepares (the call that opens a connection, the grant of
// a lease), because the suite lets its faults hit the first request of an operation.
bool is_lock_request(std::string_view bytes);
bool is_lease_grant(std::string_view bytes);
// Any message, also those that prepare.
bool is_any_message(std::string_view bytes);

Result<std::unique_ptr<Store>> open_etcd(const std::string& url, const OpenOptions& opening = {});

// Puts keys until the server has no space for more, and has raised its alarm.
void fill_up(const rig::EtcdServer& server);

// One server for the whole program, and a prefix of its own for each case.
class EtcdUnderTest final : public ServerUnderTest {
 public:
  EtcdUnderTest();

  std::string url() override { return "etcd://" + server_.address() + "/" + prefix_; }
  std::unique_ptr<Store> open() override;
  std::unique_ptr<Store> open_through_proxies() override;
  std::vector<rig::TcpProxy*> proxies() override { return {&proxy_}; }
  void kill() override { server_.kill(); }
  void start() override { server_.start(); }
  // The first one finds others there.
  rig::IsRequest takes_permit() override {
    return [earlier = 0](std::string_view) mutable { return earlier++ == 1; };
  }

  rig::EtcdServer& server() { return server_; }
  const std::string& prefix() const { return prefix_; }

 private:
  rig::EtcdServer& server_;
  const std::string prefix_;
  rig::TcpProxy proxy_;
};

}  // namespace leasehold::testing
