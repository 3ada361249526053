#include <chrono>
#include <future>

#include "leasehold/election.h"
#include "testing/held.h"
#include "testing/observed.h"
#include "testing/watch_conformance.h"

namespace leasehold::testing {

using namespace std::chrono_literals;

TEST_P(WatchWireConformance, WhatHappenedBehindALostConnectionIsToldAfterwards) {
  Client observer(server->open_through_proxies());
  Client other(server->open());
  auto held = take(other, "job", {.ttl = 10min});
  ASSERT_TRUE(held);
  Observed seen;
  const auto watch = observer.watch("job", seen.one());
  ASSERT_TRUE(watch);
  ASSERT_TRUE(seen.wait_until_held_by(held->lease.request()));
  refuse(true);
  ASSERT_TRUE(seen.wait_until_unseen());
  ASSERT_TRUE(held->lease.release());
  refuse(false);
  ASSERT_TRUE(seen.wait_until_free());
  // And it goes on.
  auto next = take(other, "job", {.ttl = 10min});
  ASSERT_TRUE(next);
  ASSERT_TRUE(seen.wait_until_held_by(next->lease.request()));
}

TEST_P(WatchWireConformance, ASilentServerIsToldAndThenTheStateAlthoughItIsTheSame) {
  Client observer(server->open_through_proxies());
  Client other(server->open());
  auto held = take(other, "job", {.ttl = 10min});
  ASSERT_TRUE(held);
  Observed seen;
  const auto watch = observer.watch("job", seen.one());
  ASSERT_TRUE(watch);
  ASSERT_TRUE(seen.wait_until_held_by(held->lease.request()));
  hold(true);
  ASSERT_TRUE(seen.wait_until_unseen());
  hold(false);
  ASSERT_TRUE(seen.wait_until_held_by(held->lease.request()));
}

TEST_P(WatchWireConformance, ACampaignOutlastsItsStoresAbsence) {
  Election election(Client(server->open_through_proxies()), LockName::parse("leader").value());
  refuse(true);
  auto campaign = std::async(std::launch::async, [&] { return election.campaign(); });
  EXPECT_EQ(campaign.wait_for(200ms), std::future_status::timeout);
  refuse(false);
  const auto leads = campaign.get();
  EXPECT_TRUE(leads) << to_string(leads.error());
}

}  // namespace leasehold::testing
