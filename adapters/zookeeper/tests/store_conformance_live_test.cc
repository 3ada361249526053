#include "testing/store_conformance.h"

#include <chrono>
#include <thread>

#include "leasehold/url.h"
#include "leasehold/zookeeper/adapter.h"
#include "one_server.h"
#include "rig/tcp_proxy.h"
#include "testing/lock_patterns_conformance.h"
#include "testing/mode_conformance.h"
#include "testing/partitions_conformance.h"
#include "testing/raw_store.h"
#include "testing/worker.h"

#define THREADED
#include <zookeeper/zookeeper.h>

namespace leasehold::testing {
namespace {

using namespace std::chrono_literals;

class ZookeeperFolder final : public StoreUnderTest {
 public:
  std::string url() override { return "zookeeper://" + one_server().address() + folder_; }
  std::unique_ptr<Store> open() override { return open_zookeeper(url()); }
  std::unique_ptr<Store> open_patient() override {
    static rig::ZookeeperServer patient({.max_session_ms = 60'000});
    return open_zookeeper("zookeeper://" + patient.address() + folder_);
  }
  std::unique_ptr<Store> open_slow() override {
    return open_zookeeper("zookeeper://" + proxy_.address() + folder_);
  }
  void answer_after(Millis time) override {
    proxy_.delay(time / 2);
    if (time == Millis(0)) proxy_.cut();
  }
  // With ten thousand they cost 6 KiB each, and their going takes minutes.
  int crowd() const override { return 1'000; }
  void restart() override {
    one_server().kill();
    one_server().start();
  }
  // As the server does with containers that are empty.
  void sweep(const std::string& lock) override {
    zhandle_t* handle = zookeeper_init2(one_server().address().c_str(), nullptr, 2000, nullptr,
                                        nullptr, 0, [](const char*) {});
    EXPECT_EQ(zoo_delete(handle, (folder_ + "/" + lock).c_str(), -1), ZOK);
    zookeeper_close(handle);
  }

 private:
  const std::string folder_ = fresh_folder();
  rig::TcpProxy proxy_{one_server().port()};
};

INSTANTIATE_TEST_SUITE_P(Zookeeper, StoreConformance,
                         ::testing::Values(StoreCase{
                             "one", [] { return std::make_unique<ZookeeperFolder>(); }}),
                         name_of_store_case);

INSTANTIATE_TEST_SUITE_P(Zookeeper, ModeConformance,
                         ::testing::Values(StoreCase{
                             "one", [] { return std::make_unique<ZookeeperFolder>(); }}),
                         name_of_store_case);

INSTANTIATE_TEST_SUITE_P(Zookeeper, PartitionsConformance,
                         ::testing::Values(StoreCase{
                             "one", [] { return std::make_unique<ZookeeperFolder>(); }}),
                         name_of_store_case);

INSTANTIATE_TEST_SUITE_P(Zookeeper, LockPatternsConformance,
                         ::testing::Values(StoreCase{
                             "one", [] { return std::make_unique<ZookeeperFolder>(); }}),
                         name_of_store_case);

// ZooKeeper does not tell when a session will end: what is shown must not look as if it did.
TEST(ZookeeperTimeLeft, IsOneBoundUntilAKilledHolderHasGone) {
  const std::string url = "zookeeper://" + one_server().address() + fresh_folder();
  RawStore observer(open_zookeeper(url));
  Worker holder = Worker::hold(url, "job", 1s);
  ASSERT_EQ(holder.line(), "asking");
  ASSERT_EQ(holder.line().substr(0, 4), "held");
  const Millis bound = observer.inspect().value().holder().value().remaining;
  holder.kill();
  while (const auto seen = observer.inspect().value().holder()) {
    EXPECT_TRUE(seen->at_most);
    ASSERT_EQ(seen->remaining, bound);
    std::this_thread::sleep_for(10ms);  // the server has no event for it
  }
}

}  // namespace
}  // namespace leasehold::testing
