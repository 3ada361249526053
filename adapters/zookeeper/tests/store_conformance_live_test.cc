#include "testing/store_conformance.h"

#include "leasehold/url.h"
#include "leasehold/zookeeper/adapter.h"
#include "one_server.h"
#include "rig/tcp_proxy.h"

namespace leasehold::testing {
namespace {

class ZookeeperFolder final : public StoreUnderTest {
 public:
  std::string url() override { return "zookeeper://" + one_server().address() + folder_; }
  std::unique_ptr<Store> open() override { return open_zookeeper(url()); }
  std::unique_ptr<Store> open_slow() override {
    return open_zookeeper("zookeeper://" + proxy_.address() + folder_);
  }
  void answer_after(Millis time) override {
    proxy_.delay(time / 2);
    if (time == Millis(0)) proxy_.cut();
  }
  void restart() override {
    one_server().kill();
    one_server().start();
  }

 private:
  const std::string folder_ = fresh_folder();
  rig::TcpProxy proxy_{one_server().port()};
};

INSTANTIATE_TEST_SUITE_P(Zookeeper, StoreConformance,
                         ::testing::Values(StoreCase{
                             "one", [] { return std::make_unique<ZookeeperFolder>(); }}),
                         name_of_store_case);

}  // namespace
}  // namespace leasehold::testing
