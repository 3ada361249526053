// Redlock and five real servers, some of which fail.
#include <gmock/gmock.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <future>
#include <iostream>
#include <thread>

#include "server_under_test.h"
#include "testing/one_in_time.h"

namespace leasehold::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

class RedlockLive : public ::testing::Test {
 protected:
  rig::RedisServer& node(std::size_t index) { return *under.nodes()[index]; }
  std::size_t votes(const std::string& key) {
    std::size_t count = 0;
    for (std::size_t i = 0; i < RedlockUnderTest::kNodes; ++i) {
      if (node(i).process().runs() && node(i).cli({"EXISTS", key}) == "1") ++count;
    }
    return count;
  }
  RedlockUnderTest under;
};

TEST_F(RedlockLive, TwoOfFiveDeadStillGrantRenewAndRelease) {
  Client client(under.open());
  node(1).process().kill();
  node(3).process().kill();
  auto lease = client.acquire("job", {.ttl = 2s});
  ASSERT_TRUE(lease) << to_string(lease.error());
  for (int renewal = 0; renewal < 3; ++renewal) {
    const BootTime before = lease->deadline();
    while (lease->deadline() == before && lease->state() == LeaseState::held) {
      std::this_thread::sleep_for(1ms);
    }
    ASSERT_EQ(lease->state(), LeaseState::held);
  }
  EXPECT_EQ(client.acquire("job").error().code, ErrorCode::busy);
  EXPECT_EQ(lease->release().value(), ReleaseOutcome::released);
  EXPECT_EQ(votes("lock:job"), 0u);
  Client newcomer(under.open());
  EXPECT_TRUE(newcomer.acquire("job"));
}

TEST_F(RedlockLive, ThreeOfFiveDeadIsUnavailableAndRecovers) {
  Client client(under.open());
  auto held = client.acquire("held", {.ttl = 60s});
  ASSERT_TRUE(held);
  for (const std::size_t dead : {0, 2, 4}) node(dead).process().kill();
  const auto refused = client.acquire("job", {.ttl = 24h});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unavailable) << to_string(refused.error());
  EXPECT_THAT(refused.error().message, HasSubstr("2 of 5 nodes"));
  EXPECT_THAT(refused.error().store_words, HasSubstr(node(0).address()));
  EXPECT_EQ(votes("lock:job"), 0u) << "what was granted by the two was taken back";
  const Url url = Url::parse(under.url()).value();
  const auto closed = redis::adapters().back().open_store(url, {});
  ASSERT_FALSE(closed);
  EXPECT_EQ(closed.error().code, ErrorCode::unavailable);

  for (const std::size_t dead : {0, 2, 4}) node(dead).process().start();
  EXPECT_TRUE(client.acquire("job", {.wait = 30s}));
  EXPECT_EQ(held->release().value(), ReleaseOutcome::released) << "its votes were durable";
}

TEST_F(RedlockLive, SilentNodesDelayTheOpeningOnlyWhileThereIsNoMajority) {
  const auto time_to_open = [&] {
    const BootTime before = BootClock::now();
    open_url(under.proxied_url());
    return BootClock::now() - before;
  };
  for (const std::size_t silent : {0, 3}) under.proxies()[silent]->hold(true);
  EXPECT_TRUE(one_ends_in_time(4s, time_to_open)) << "not the five seconds that the store may take";
  for (rig::TcpProxy* proxy : under.proxies()) {
    proxy->hold(false);
    proxy->delay(250ms);
  }
  EXPECT_GT(time_to_open(), 1s) << "a slow majority is waited for";
  under.proxies()[0]->hold(true);
  EXPECT_TRUE(one_ends_in_time(4s, time_to_open)) << "and then the silent one no longer";
}

TEST_F(RedlockLive, OpeningCanBeCancelled) {
  for (rig::TcpProxy* proxy : under.proxies()) proxy->hold(true);
  std::stop_source source;
  OpenOptions opening;
  opening.store_timeout = 10min;
  opening.stop = source.get_token();
  auto opened = std::async(std::launch::async, [&] {
    return redis::adapters().back().open_store(Url::parse(under.proxied_url()).value(), opening);
  });
  for (rig::TcpProxy* proxy : under.proxies()) proxy->wait_for_connection();
  source.request_stop();
  EXPECT_EQ(opened.get().error().code, ErrorCode::cancelled);
}

TEST_F(RedlockLive, EveryNodeSeesOneRequestPerAcquireAndPerRelease) {
  std::vector<std::unique_ptr<rig::TcpProxy>> proxies;  // count every command
  std::string hosts;
  for (std::size_t i = 0; i < RedlockUnderTest::kNodes; ++i) {
    proxies.push_back(std::make_unique<rig::TcpProxy>(node(i).port()));
    hosts += (i == 0 ? "" : ",") + proxies.back()->address();
  }
  RawStore store(open_url("redlock://" + hosts + "?node_timeout=20000"));
  const RequestId first = new_request();
  ASSERT_TRUE(store.acquire(first));
  ASSERT_EQ(store.release(first), ReleaseReply::released);
  const RequestId second = new_request();
  std::vector<std::size_t> before;
  for (const auto& it : proxies) before.push_back(it->requests());
  ASSERT_TRUE(store.acquire(second));
  for (std::size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(proxies[i]->requests(), before[i] + 1) << "node " << i;
  }
  ASSERT_EQ(store.release(second), ReleaseReply::released);
  for (std::size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(proxies[i]->requests(), before[i] + 2) << "node " << i;
    EXPECT_EQ(proxies[i]->connections(), 1u) << "node " << i;
  }
}

TEST_F(RedlockLive, AllNodesAreAskedBeforeAnyAnswers) {
  RawStore store(under.open_through_proxies());
  const RequestId warm_up = new_request();
  ASSERT_TRUE(store.acquire(warm_up));
  ASSERT_EQ(store.release(warm_up), ReleaseReply::released);
  std::vector<std::size_t> asked;
  std::vector<std::size_t> answered;
  for (rig::TcpProxy* proxy : under.proxies()) {
    asked.push_back(proxy->requests());
    answered.push_back(proxy->round_trips());
    proxy->delay(2s);
  }
  auto granted = std::async(std::launch::async, [&] { return store.acquire(new_request(), 60s); });
  for (std::size_t i = 0; i < asked.size(); ++i) {
    while (under.proxies()[i]->requests() == asked[i]) std::this_thread::sleep_for(1ms);
  }
  for (std::size_t i = 0; i < asked.size(); ++i) {
    EXPECT_EQ(under.proxies()[i]->round_trips(), answered[i]) << "node " << i;
  }
  EXPECT_TRUE(std::holds_alternative<Granted>(granted.get().value()));
}

TEST_F(RedlockLive, AllNodesAreConnectedBeforeAnyAnswers) {
  Client client(under.open_through_proxies());
  for (rig::TcpProxy* proxy : under.proxies()) proxy->hold(true);
  const auto take = [&](const std::string& lock) {
    return std::async(std::launch::async, [&client, lock] {
      return client.acquire(lock, {.ttl = 2min, .store_timeout = 1min}).has_value();
    });
  };
  auto one = take("one");  // on the connections that are there
  auto two = take("two");
  const auto connected = [&] {
    return std::ranges::all_of(under.proxies(), [](auto* it) { return it->connections() >= 2; });
  };
  const BootTime patience = BootClock::now() + 10s;  // a node may take twenty
  while (!connected() && BootClock::now() < patience) std::this_thread::sleep_for(1ms);
  EXPECT_TRUE(connected());
  for (rig::TcpProxy* proxy : under.proxies()) proxy->hold(false);
  EXPECT_TRUE(one.get());
  EXPECT_TRUE(two.get());
}

#if !defined(__SANITIZE_THREAD__)  // ThreadSanitizer starts no threads in a forked process
// The limit does not hold for root.
void allow_no_more_threads() {
  constexpr uid_t kNobody = 65534;
  if (geteuid() == 0 && setresuid(kNobody, kNobody, kNobody) != 0) std::_Exit(2);
  const rlimit none{1, 1};
  if (setrlimit(RLIMIT_NPROC, &none) != 0) std::_Exit(3);
}

TEST_F(RedlockLive, ConnectsOneByOneWithoutThreads) {
  const auto take_all = [&] {
    RawStore store(under.open());
    for (std::size_t i = 0; i < RedlockUnderTest::kNodes; ++i) {
      node(i).cli({"CLIENT", "KILL", "TYPE", "normal"});
    }
    allow_no_more_threads();
    for (int tries = 0; tries < 2; ++tries) {  // the first may meet the connections that were
      const auto reply = store.acquire(new_request());
      if (reply && std::holds_alternative<Granted>(*reply)) std::_Exit(0);
      std::cerr << (reply ? "busy" : to_string(reply.error())) << std::endl;
    }
    std::_Exit(1);
  };
  EXPECT_EXIT(take_all(), ::testing::ExitedWithCode(0), "");
}
#endif

TEST_F(RedlockLive, GrantIsWorthLessThanItsTtlByTheDrift) {
  RawStore store(under.open());
  const auto reply = store.acquire(new_request(), 10s);
  ASSERT_TRUE(reply);
  EXPECT_EQ(std::get<Granted>(*reply).ttl, 10s - 100ms - 2ms);
}

void pause_longer_than_the_lease(int) {
  const timespec pause{2, 0};
  nanosleep(&pause, nullptr);
}

// The thread that counts the votes stands still while it waits for the last one.
TEST_F(RedlockLive, VoteThatTookAsLongAsTheLeaseIsNoGrant) {
  RawStore store(under.open_through_proxies());
  rig::TcpProxy& silent = *under.proxies().back();
  const std::size_t before = silent.requests();
  silent.delay(5s);
  const auto usual = signal(SIGUSR1, pause_longer_than_the_lease);
  const pthread_t voting = pthread_self();
  std::thread freezer([&] {
    while (silent.requests() == before) std::this_thread::sleep_for(1ms);
    pthread_kill(voting, SIGUSR1);
  });
  const auto reply = store.acquire(new_request(), 2s);
  freezer.join();
  signal(SIGUSR1, usual);
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, ErrorCode::outcome_unknown) << to_string(reply.error());
}

TEST_F(RedlockLive, FrozenNodeIsALostVoteWhoseLeftoverIsTakenBack) {
  Client client(open_url(under.proxied_url("?node_timeout=300")));
  ASSERT_TRUE(client.acquire("warm-up")->release());
  node(2).process().freeze();
  auto lease = client.acquire("job", {.ttl = 24h});
  ASSERT_TRUE(lease) << to_string(lease.error());
  EXPECT_EQ(lease->release().value(), ReleaseOutcome::released);
  node(2).process().thaw();
  // It did the acquire, or will; and it must not stay so for a day.
  while (node(2).cli({"KEYS", "leasehold:released:*"}).empty()) std::this_thread::sleep_for(10ms);
  EXPECT_EQ(node(2).cli({"EXISTS", "lock:job"}), "0");
}

TEST_F(RedlockLive, MinorityOfVotesIsTakenBackWhenAnotherHasTheRest) {
  RawStore store(under.open());
  for (const std::size_t i : {0, 1, 2}) {
    EXPECT_EQ(node(i).cli({"SET", "lock:job", "my_random_value", "NX", "PX", "30000"}), "OK");
  }
  const auto reply = store.acquire(new_request());
  ASSERT_TRUE(reply) << to_string(reply.error());
  ASSERT_TRUE(std::holds_alternative<Busy>(*reply)) << "the documented algorithm excludes us";
  EXPECT_EQ(std::get<Busy>(*reply).ahead, "another program");
  EXPECT_EQ(node(3).cli({"EXISTS", "lock:job"}), "0");
  EXPECT_EQ(node(4).cli({"EXISTS", "lock:job"}), "0");
}

TEST_F(RedlockLive, WeExcludeTheDocumentedAlgorithm) {
  RawStore store(under.open());
  const RequestId request = new_request();
  ASSERT_TRUE(store.acquire(request));
  int theirs = 0;
  for (std::size_t i = 0; i < RedlockUnderTest::kNodes; ++i) {
    if (node(i).cli({"SET", "lock:job", "value", "NX", "PX", "30000"}) == "OK") ++theirs;
  }
  EXPECT_EQ(theirs, 0);
  EXPECT_EQ(store.release(request), ReleaseReply::released);
}

TEST_F(RedlockLive, RenewalNeedsAMajorityAndGrantsNothing) {
  RawStore store(under.open());
  const RequestId request = new_request();
  ASSERT_TRUE(store.acquire(request));
  node(0).cli({"DEL", "lock:job"});
  node(1).cli({"DEL", "lock:job"});
  EXPECT_EQ(store.renew(request), RenewReply::renewed) << "three of five";
  EXPECT_EQ(votes("lock:job"), 3u);
  node(2).cli({"DEL", "lock:job"});
  EXPECT_EQ(store.renew(request), RenewReply::gone) << "two of five";
  EXPECT_EQ(votes("lock:job"), 2u);
}

TEST_F(RedlockLive, OneLeaseInDoubtLeavesTheOthersOfItsBatchAlone) {
  RawStore store(under.open());
  RawStore beside(under.open(), "doubtful");
  const RequestId sure = new_request();
  const RequestId doubtful = new_request();
  ASSERT_TRUE(store.acquire(sure));
  ASSERT_TRUE(beside.acquire(doubtful));
  node(0).cli({"DEL", "lock:doubtful"});
  node(3).process().kill();
  node(4).process().kill();
  const Ttl ttl = Ttl::of(30s).value();
  const auto replies =
      store.renew_together({{lock_name("job"), sure, ttl}, {lock_name("doubtful"), doubtful, ttl}});
  ASSERT_TRUE(replies) << to_string(replies.error());
  EXPECT_EQ(replies->at(0), RenewReply::renewed) << "three of three";
  EXPECT_EQ(replies->at(1), RenewReply::unknown) << "two of three, and two that say nothing";
  EXPECT_FALSE(beside.try_renew(doubtful)) << "nothing is known of any";
}

// Why a node that lost its data must stay away for the longest TTL before it votes again.
TEST_F(RedlockLive, NodesThatForgetGrantTheLockTwice) {
  Client first(under.open());
  Client second(under.open());
  auto lease = first.acquire("job", {.ttl = 60s});
  ASSERT_TRUE(lease);
  for (const std::size_t i : {0, 1, 2}) node(i).cli({"FLUSHALL"});
  EXPECT_TRUE(second.acquire("job", {.ttl = 60s}));
  EXPECT_EQ(lease->state(), LeaseState::held) << "and the first still believes to have it";
}

}  // namespace
}  // namespace leasehold::testing
