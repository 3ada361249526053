// Three members: some of them die, freeze, come back.
#include <gmock/gmock.h>

#include <future>
#include <thread>

#include "etcd_under_test.h"
#include "leasehold/client.h"

namespace leasehold::testing {
namespace {

using namespace std::chrono_literals;

class EtcdClusterTest : public ::testing::Test {
 protected:
  Client client() {
    return Client(std::move(open_etcd("etcd://" + cluster.addresses() + "/test").value()));
  }
  // The store has no event for a renewal that went well, so the deadline is looked at.
  static void wait_for_renewal(const Lease& lease) {
    const BootTime before = lease.deadline();
    while (lease.deadline() == before && lease.state() != LeaseState::lost) {
      std::this_thread::sleep_for(2ms);
    }
  }
  static void wait_while(const Lease& lease, LeaseState state) {
    while (lease.state() == state) std::this_thread::sleep_for(2ms);
  }

  rig::EtcdCluster cluster;
};

TEST_F(EtcdClusterTest, LeaseSurvivesTheDeathOfTheLeader) {
  std::vector<Client> clients;
  std::vector<FencedLease> leases;
  for (int i = 0; i < 6; ++i) {  // they spread over the members
    clients.push_back(client());
    auto lease = clients.back().acquire_fenced("job " + std::to_string(i), {.ttl = 8s});
    ASSERT_TRUE(lease) << to_string(lease.error());
    leases.push_back(std::move(*lease));
  }
  const std::size_t leader = cluster.leader();
  cluster[leader].kill();
  for (auto& lease : leases) {
    wait_for_renewal(lease);
    EXPECT_EQ(lease.state(), LeaseState::held);
  }
  for (std::size_t i = 0; i < leases.size(); ++i) {
    const std::string name = "job " + std::to_string(i);
    EXPECT_EQ(leases[i].release(30s).value(), ReleaseOutcome::released);
    auto next = clients[i].acquire_fenced(name, {.wait = 30s});
    ASSERT_TRUE(next) << to_string(next.error());
    EXPECT_GT(next->token().number, leases[i].token().number);
  }
  cluster[leader].start();
}

TEST_F(EtcdClusterTest, WithoutAMajorityLeasesAreUncertainThenLostAndAllRecovers) {
  Client one = client();
  auto lease = one.acquire("job", {.ttl = 3s});
  ASSERT_TRUE(lease) << to_string(lease.error());
  cluster[0].kill();
  cluster[1].kill();
  wait_while(*lease, LeaseState::held);
  EXPECT_EQ(lease->state(), LeaseState::uncertain);
  wait_while(*lease, LeaseState::uncertain);
  EXPECT_EQ(lease->state(), LeaseState::lost);
  EXPECT_EQ(lease->remaining(), 0ms);
  cluster[0].start_without_waiting();
  cluster[1].start();
  const auto next = one.acquire("job", {.wait = 60s, .store_timeout = 60s});
  EXPECT_TRUE(next) << to_string(next.error());
}

TEST_F(EtcdClusterTest, FrozenMemberIsLeft) {
  std::vector<Client> clients;
  std::vector<Lease> leases;
  for (int i = 0; i < 6; ++i) {
    clients.push_back(client());
    auto lease = clients.back().acquire("job " + std::to_string(i), {.ttl = 12s});
    ASSERT_TRUE(lease) << to_string(lease.error());
    leases.push_back(std::move(*lease));
  }
  // A waiter, whose watch may be on the frozen member.
  auto waiting = std::async(std::launch::async, [&] {
    return clients[0].acquire("job 1", {.wait = 60s, .store_timeout = 30s});
  });
  const std::size_t frozen = (cluster.leader() + 1) % cluster.size();  // not the leader
  cluster[frozen].freeze();
  for (auto& lease : leases) {
    wait_for_renewal(lease);
    EXPECT_EQ(lease.state(), LeaseState::held);
  }
  EXPECT_EQ(leases[1].release(30s).value(), ReleaseOutcome::released);
  EXPECT_TRUE(waiting.get());
  cluster[frozen].thaw();
}

}  // namespace
}  // namespace leasehold::testing
