// What every store with a server must do when the wire or the server fails. A store plugs in with a
// ServerUnderTest and one line:
//
//   INSTANTIATE_TEST_SUITE_P(Redis, StoreWireConformance,
//                            ::testing::Values(ServerCase{"one", make}), name_of_server_case);
#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "rig/tcp_proxy.h"
#include "testing/raw_store.h"
#include "testing/store_conformance.h"

namespace leasehold::testing {

// A store whose server sits behind proxies, one per node that a client connects to.
class ServerUnderTest : public StoreUnderTest {
 public:
  // A new connection that goes through the proxies; open() and url() go past them.
  virtual std::unique_ptr<Store> open_through_proxies() = 0;
  virtual std::vector<rig::TcpProxy*> proxies() = 0;

  // SIGKILL to all server processes, and their start; the locks that were durable are still there.
  // Connections may be open.
  virtual void kill() = 0;
  virtual void start() = 0;

  // False: how long a grant still lasts is known only to who has it.
  virtual bool tells_remaining() { return true; }

  // False: a grant ends with the connection that it was given on.
  virtual bool grants_outlive_connections() { return true; }

  // False: if the server was away for long, a grant may be over before its TTL.
  virtual bool grants_outlive_restarts() { return true; }

  // Which of the requests of an acquire takes a permit beside others. By default the first one.
  virtual rig::IsRequest takes_permit() { return {}; }

  void restart() override {
    kill();
    start();
  }

  std::unique_ptr<Store> open_slow() override { return open_through_proxies(); }
  void answer_after(Millis time) override {
    for (rig::TcpProxy* proxy : proxies()) {
      proxy->delay(time / 2);
      if (time == Millis(0)) proxy->cut();  // and with it what is still late
    }
  }
};

struct ServerCase {
  std::string name;
  std::function<std::unique_ptr<ServerUnderTest>()> make;
};
inline std::string name_of_server_case(const ::testing::TestParamInfo<ServerCase>& info) {
  return info.param.name;
}
inline std::ostream& operator<<(std::ostream& out, const ServerCase& it) {
  return out << it.name;
}

// Both suites for one store: LEASEHOLD_SERVER_CONFORMANCE(Redis, "one", RedisUnderTest);
#define LEASEHOLD_SERVER_CONFORMANCE(Store, name, UnderTest)                             \
  INSTANTIATE_TEST_SUITE_P(                                                              \
      Store, StoreConformance,                                                           \
      ::testing::Values(StoreCase{name, [] { return std::make_unique<UnderTest>(); }}),  \
      name_of_store_case);                                                               \
  INSTANTIATE_TEST_SUITE_P(                                                              \
      Store, StoreWireConformance,                                                       \
      ::testing::Values(ServerCase{name, [] { return std::make_unique<UnderTest>(); }}), \
      name_of_server_case)

class StoreWireConformance : public ::testing::TestWithParam<ServerCase> {
 protected:
  StoreWireConformance() : server(GetParam().make()) {}
  ~StoreWireConformance() override { heal(); }

  Client direct_client() { return Client(server->open()); }
  Client proxied_client() { return Client(server->open_through_proxies()); }
  std::vector<Mode> if_it_has(std::vector<Mode> modes) {
    return direct_client().store().modes ? std::move(modes) : std::vector<Mode>();
  }

  // Lets `call` run into the fault on every proxy. For a lost reply it waits until `went_through`
  // holds, and only then cuts the connections: the server has done it, and nobody was told.
  // `kills`: and the server dies, and is started again.
  template <class Call>
  auto with_fault(rig::WireFault fault, Call call, const std::function<bool()>& went_through,
                  bool kills = false, const rig::IsRequest& chosen = {});
  // Lets `call` be done, and hang without its reply until cut().
  template <class Call>
  auto leave_without_reply(Call call, const std::function<bool()>& went_through,
                           const rig::IsRequest& chosen = {});

  // The request that makes the grant in this mode, beside others who have it.
  rig::IsRequest takes(Mode mode) {
    return mode.is_permit() ? server->takes_permit() : rig::IsRequest();
  }
  void arm(rig::WireFault fault, const rig::IsRequest& chosen = {});
  void wait_for_fault(rig::WireFault fault, const std::function<bool()>& went_through,
                      bool kills = false);
  std::size_t round_trips();
  void cut();
  void refuse(bool on);
  void hold(bool on);
  void heal();

  std::unique_ptr<ServerUnderTest> server;
};

}  // namespace leasehold::testing
