// Three servers: the leader dies, the majority is gone, a server is cut off.
#include <gmock/gmock.h>

#include <chrono>
#include <future>
#include <thread>

#include "leasehold/client.h"
#include "one_server.h"
#include "testing/raw_store.h"
#include "testing/results.h"
#include "testing/worker.h"

namespace leasehold::testing {
namespace {

using namespace std::chrono_literals;

rig::ZookeeperEnsemble& ensemble() {
  static rig::ZookeeperEnsemble three({.min_session_ms = 1000, .max_session_ms = 60'000});
  return three;
}

void wait_until(const std::function<bool()>& holds) {
  while (!holds()) std::this_thread::sleep_for(5ms);
}

class ZookeeperEnsembleTest : public ::testing::Test {
 protected:
  void TearDown() override { ensemble().start(); }
  std::string url(const std::string& hosts) const { return "zookeeper://" + hosts + folder_; }
  Client client() { return Client(open_zookeeper(url(ensemble().addresses()))); }

  const std::string folder_ = fresh_folder();
};

TEST_F(ZookeeperEnsembleTest, LeasesOutliveTheLeader) {
  Client one = client();
  std::vector<FencedLease> leases;
  for (int i = 0; i < 10; ++i) {
    auto lease = one.acquire_fenced("job " + std::to_string(i), {.ttl = 16s});
    ASSERT_TRUE(lease) << to_string(lease.error());
    leases.push_back(std::move(*lease));
  }
  ensemble()[ensemble().leader()].kill();
  const BootTime after = BootClock::now();
  for (FencedLease& lease : leases) {
    // Renewed since: its deadline is later than any renewal from before could have made it.
    wait_until([&] { return lease.state() == LeaseState::lost || lease.deadline() > after + 16s; });
    EXPECT_EQ(lease.state(), LeaseState::held);
  }
  const std::int64_t before = leases[0].token().number.value();
  EXPECT_EQ(leases[0].release().value(), ReleaseOutcome::released);
  auto next = one.acquire_fenced("job 0", {.store_timeout = 30s});
  ASSERT_TRUE(next) << to_string(next.error());
  EXPECT_GT(next->token().number.value(), before) << "a new leader counts on";
}

TEST_F(ZookeeperEnsembleTest, PermitsKeepTheirSlotsThoughTheLeaderDiesBesideAFrozenHolder) {
  const Mode two = Mode::permit_of(2);
  Worker frozen = Worker::hold(url(ensemble().addresses()), "job", 8s, 0s, two);
  EXPECT_EQ(frozen.line(), "asking");
  EXPECT_THAT(frozen.line(), ::testing::StartsWith("held"));
  Client one = client();
  Client other = client();
  auto kept = one.acquire_fenced("job", {.ttl = 16s, .mode = two});
  ASSERT_TRUE(good(kept));
  EXPECT_EQ(kept->slot(), Slot{1});
  frozen.freeze();
  ensemble()[ensemble().leader()].kill();
  const auto next = other.acquire_fenced("job", {.wait = 60s, .store_timeout = 30s, .mode = two});
  ASSERT_TRUE(good(next));
  EXPECT_EQ(next->slot(), Slot{0});
  EXPECT_GT(next->token().number, kept->token().number);
  EXPECT_EQ(kept->state(), LeaseState::held);
  EXPECT_EQ(one.inspect(lock_name("job"))->holders.size(), 2u);
  frozen.thaw();
  EXPECT_EQ(frozen.line(), "lost");
}

TEST_F(ZookeeperEnsembleTest, WithoutAMajorityLeasesAreUncertainThenLostAndAllRecovers) {
  Client one = client();
  auto lease = one.acquire("job", {.ttl = 3s});
  ASSERT_TRUE(lease) << to_string(lease.error());
  std::promise<void> told;
  const std::stop_callback on_loss(lease->lost(), [&] { told.set_value(); });
  const std::size_t leader = ensemble().leader();
  ensemble()[leader].kill();
  ensemble()[(leader + 1) % 3].kill();
  wait_until([&] { return lease->state() != LeaseState::held; });
  EXPECT_EQ(lease->state(), LeaseState::uncertain);
  told.get_future().wait();
  EXPECT_EQ(lease->state(), LeaseState::lost);
  EXPECT_FALSE(one.acquire("other", {.store_timeout = 300ms}));
  ensemble().start();
  const auto again = one.acquire("job", {.wait = 60s, .store_timeout = 30s});
  EXPECT_TRUE(again) << to_string(again.error());
}

TEST_F(ZookeeperEnsembleTest, ServerCutOffFromTheLeaderRenewsNothing) {
  const std::size_t leader = ensemble().leader();
  const std::size_t follower = (leader + 1) % 3;
  RawStore store(open_zookeeper(url(ensemble()[follower].address())), "job", 1s);
  const RequestId request = new_request();
  ASSERT_TRUE(store.acquire(request, 60s));
  ASSERT_EQ(store.renew(request), RenewReply::renewed);
  ensemble()[leader].freeze();
  // The follower has not noticed yet, and would still answer what it can answer by itself. What the
  // leader is known to have heard covers half a tick.
  wait_until([&] { return !store.try_renew(request).has_value(); });
  EXPECT_FALSE(store.try_renew(request).has_value());
  ensemble()[leader].thaw();
  auto reply = store.try_renew(request);
  wait_until([&] { return (reply = store.try_renew(request)).has_value(); });
  EXPECT_EQ(reply->at(0), RenewReply::renewed);
}

// Only with sessions of its own does a server without a majority let clients read.
TEST(ZookeeperReadOnly, ServerThatOnlyReadsIsNotUsedAndAllRecovers) {
  rig::ZookeeperEnsemble three(
      {.min_session_ms = 1000,
       .max_session_ms = 20'000,
       .read_only_without_majority = true,
       .more = {"localSessionsEnabled=true", "localSessionsUpgradingEnabled=true"}});
  const auto url = [](const std::string& hosts) { return "zookeeper://" + hosts + "/locks"; };
  RawStore store(open_zookeeper(url(three.addresses())), "job", 2s);
  const RequestId request = new_request();
  ASSERT_TRUE(store.acquire(request, 16s));
  const std::size_t leader = three.leader();
  rig::ZookeeperServer& left = three[(leader + 2) % 3];
  three[leader].kill();
  three[(leader + 1) % 3].kill();
  wait_until([&] { return left.mode() == "read-only"; });

  EXPECT_FALSE(store.try_renew(request));
  const auto seen = store.inspect();
  ASSERT_FALSE(seen) << "what it knows may be old";
  EXPECT_EQ(seen.error().code, ErrorCode::unavailable) << to_string(seen.error());
  const auto refused = store.acquire(new_request());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unavailable) << to_string(refused.error());
  const auto opened =
      zookeeper::adapters().front().open_store(Url::parse(url(left.address())).value(), {});
  ASSERT_FALSE(opened) << "it would not be told apart from one that serves";
  EXPECT_EQ(opened.error().code, ErrorCode::unavailable);
  EXPECT_THAT(opened.error().store_words, ::testing::HasSubstr("Zookeeper version"));

  three.start();
  wait_until([&] {
    const auto reply = store.acquire(new_request());
    return reply.has_value();
  });
}

}  // namespace
}  // namespace leasehold::testing
