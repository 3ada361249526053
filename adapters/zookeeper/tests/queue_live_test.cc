// What is seen on the wire: round trips, who is woken, and what a lost session means.
#include <gmock/gmock.h>
#include <sys/socket.h>

#include <chrono>
#include <future>
#include <mutex>
#include <thread>

#include "ended_session.h"
#include "interposed.h"
#include "leasehold/client.h"
#include "proxied_server.h"
#include "signs_of_life.h"
#include "testing/raw_store.h"

namespace leasehold::testing {
namespace {

using namespace std::chrono_literals;

TEST(ZookeeperQueue, AcquireIsAtMostTwoRoundTripsAndReleaseOne) {
  ProxiedZookeeper server(is_any_request);
  Client client(server.open_through_proxies());
  // So that nothing is answered before all that goes out together is on its way.
  server.proxy().delay(100ms);
  for (int i = 0; i < 3; ++i) {  // the first time it makes the folder
    const std::size_t before = server.proxy().round_trips();
    auto lease = client.acquire("job");
    ASSERT_TRUE(lease) << to_string(lease.error());
    const std::size_t held = server.proxy().round_trips();
    EXPECT_LE(held - before, 2u);
    EXPECT_EQ(lease->release().value(), ReleaseOutcome::released);
    EXPECT_EQ(server.proxy().round_trips() - held, 1u);
  }
}

TEST(ZookeeperQueue, LocksOfOneClientAndOneTtlShareASession) {
  ProxiedZookeeper server;
  Client client(server.open_through_proxies());
  std::vector<Lease> leases;
  const auto take_twenty = [&](Millis ttl) {
    const std::size_t before = server.proxy().connections();
    for (int i = 0; i < 20; ++i) {
      const std::string name = "job " + std::to_string(leases.size());
      leases.push_back(client.acquire(name, {.ttl = ttl}).value());
    }
    return server.proxy().connections() - before;
  };
  EXPECT_EQ(take_twenty(30s), 0u) << "the session that the store was opened with";
  EXPECT_EQ(take_twenty(7s), 1u);
  EXPECT_EQ(take_twenty(7s), 0u);
  for (Lease& it : leases) EXPECT_EQ(it.release().value(), ReleaseOutcome::released);
}

TEST(ZookeeperQueue, WaiterBehindOneThatLeavesKeepsWaitingAndIsWokenLater) {
  ProxiedZookeeper server;
  RawStore store(server.open());
  const RequestId holder = new_request();
  const RequestId leaver = new_request();
  const RequestId behind = new_request();
  ASSERT_TRUE(store.acquire(holder));
  ASSERT_TRUE(std::holds_alternative<Queued>(store.acquire(leaver, 30s, true).value()));
  ASSERT_TRUE(std::holds_alternative<Queued>(store.acquire(behind, 30s, true).value()));
  ASSERT_EQ(store.release(leaver), ReleaseReply::released);
  ASSERT_TRUE(store.events.wait_for_nudge(behind, 30s));
  ASSERT_TRUE(std::holds_alternative<Queued>(store.acquire(behind, 30s, true).value()));
  RawStore other(server.open());
  EXPECT_TRUE(std::holds_alternative<Busy>(other.acquire(new_request()).value()));
  ASSERT_EQ(store.release(holder), ReleaseReply::released);
  wait_until(
      [&] { return std::holds_alternative<Granted>(store.acquire(behind, 30s, true).value()); });
}

TEST(ZookeeperQueue, WatchOutlivesItsConnection) {
  ProxiedZookeeper server;
  RawStore holder(server.open());
  RawStore waiting(server.open_through_proxies());
  const RequestId first = new_request();
  const RequestId second = new_request();
  ASSERT_TRUE(holder.acquire(first));
  ASSERT_TRUE(std::holds_alternative<Queued>(waiting.acquire(second, 30s, true).value()));
  server.proxy().cut();
  ASSERT_EQ(holder.release(first), ReleaseReply::released);
  EXPECT_TRUE(waiting.events.wait_for_nudge(second, 10s)) << "sooner than it would ask by itself";
}

TEST(ZookeeperQueue, TryThatFindsTheLockTakenLeavesNothing) {
  ProxiedZookeeper server;
  RawStore holder(server.open());
  RawStore other(server.open_through_proxies());
  const RequestId first = new_request();
  ASSERT_TRUE(holder.acquire(first));
  ASSERT_TRUE(std::holds_alternative<Busy>(other.acquire(new_request()).value()));
  EXPECT_TRUE(holder.inspect()->waiters.empty());
  // Its removal is lost on the way: the next connection makes up for it.
  server.proxy().arm(rig::WireFault::cut_before, [](std::string_view bytes) {
    bool removes = false;
    for_each_request(bytes, [&](std::int32_t type) { removes |= type == kDelete; });
    return removes;
  });
  const auto reply = other.acquire(new_request());
  ASSERT_TRUE(reply) << to_string(reply.error());
  EXPECT_TRUE(std::holds_alternative<Busy>(*reply));
  ASSERT_TRUE(server.proxy().wait_for_fault(10s));
  wait_until([&] { return holder.inspect()->waiters.empty(); });
  ASSERT_EQ(holder.release(first), ReleaseReply::released);
}

TEST(ZookeeperQueue, WaiterFindsItsTurnThoughTheAnswerWasLost) {
  for (const rig::WireFault fault : {rig::WireFault::cut_before, rig::WireFault::cut_after}) {
    ProxiedZookeeper server(is_any_request);
    Client holder(server.open());
    Client waiter(server.open_through_proxies());
    auto lease = holder.acquire("job");
    ASSERT_TRUE(lease);
    auto waiting = std::async(std::launch::async, [&] {
      return waiter.acquire("job", {.wait = 60s, .store_timeout = 30s});
    });
    wait_until([&] { return holder.inspect(lock_name("job"))->waiters.size() == 1; });
    server.proxy().arm(fault, [](std::string_view bytes) {
      bool looks = false;
      for_each_request(bytes, [&](std::int32_t type) { looks |= type == kGetChildren; });
      return looks;
    });
    ASSERT_TRUE(lease->release());
    ASSERT_TRUE(server.proxy().wait_for_fault(30s));
    const auto got = waiting.get();
    EXPECT_TRUE(got) << to_string(got.error());
  }
}

// It asks again shortly before the first call's time is over: that call no longer counts.
TEST(ZookeeperQueue, WaiterKeepsItsPlaceThoughTheAnswerWasLost) {
  constexpr Millis kTtl = 6s;
  ProxiedZookeeper server;
  RawStore direct(server.open());
  RawStore faulty(server.open_through_proxies());
  ASSERT_TRUE(direct.acquire(new_request()));
  ASSERT_TRUE(faulty.acquire_another(lock_name("another"), new_request(), kTtl));  // its session
  const RequestId first = new_request();
  const auto waits_first = [&] {
    const auto status = direct.inspect();
    return status && !status->waiters.empty() && status->waiters.front().request == first;
  };
  server.proxy().arm(rig::WireFault::lose_reply);
  const BootTime began = BootClock::now();
  auto lost = std::async(std::launch::async, [&] { return faulty.acquire(first, kTtl, true); });
  wait_until(waits_first);
  server.proxy().refuse(true);
  ASSERT_FALSE(lost.get());
  wait_until([&] { return BootClock::now() - began > kTtl * 3 / 4; });
  server.proxy().refuse(false);
  wait_until([&] { return faulty.acquire(first, kTtl, true).has_value(); });
  ASSERT_TRUE(std::holds_alternative<Queued>(direct.acquire(new_request(), 30s, true).value()));
  wait_until([&] { return BootClock::now() - began > kTtl + 1s; });
  EXPECT_TRUE(waits_first());
}

TEST(ZookeeperQueue, NodeOfAnotherSessionIsNoGrant) {
  ProxiedZookeeper server;
  RawStore lost(server.open_through_proxies());
  RawStore other(server.open());
  // The folder is known from now on: the next acquire has one write, and that is cut.
  const RequestId earlier = new_request();
  ASSERT_TRUE(lost.acquire(earlier));
  ASSERT_EQ(lost.release(earlier), ReleaseReply::released);
  const RequestId request = new_request();
  server.proxy().arm(rig::WireFault::cut_before);
  ASSERT_FALSE(lost.acquire(request));
  // Stands for a node that an earlier session of the same client left behind.
  const std::int64_t leftover = other.token(request);
  const auto again = lost.acquire(request);
  ASSERT_TRUE(again) << to_string(again.error());
  ASSERT_TRUE(std::holds_alternative<Granted>(*again));
  EXPECT_GT(std::get<Granted>(*again).token.value(), leftover);
  EXPECT_EQ(other.renew(request), RenewReply::gone);
  EXPECT_EQ(lost.renew(request), RenewReply::renewed);
}

TEST(ZookeeperQueue, RenewalIsATransactionAndReachesTheServerEachTime) {
  ProxiedZookeeper server([](std::string_view bytes) {
    bool transacts = false;
    for_each_request(bytes, [&](std::int32_t type) { transacts |= type == kMulti; });
    return transacts;
  });
  RawStore store(server.open_through_proxies());
  const RequestId request = new_request();
  ASSERT_TRUE(store.acquire(request));
  const std::size_t before = server.proxy().requests();
  EXPECT_EQ(store.renew(request), RenewReply::renewed);
  EXPECT_EQ(store.renew(request), RenewReply::renewed);
  EXPECT_EQ(server.proxy().requests() - before, 2u);
}

constexpr Millis kShortTtl = 3s;

// The network hangs, until its last sign of life is too old for a whole lease. Returns the time of
// that sign.
BootTime hold_too_long(rig::TcpProxy& network) {
  network.hold(true);
  const BootTime since = BootClock::now();
  const Millis session = zookeeper::session_for(Ttl::of(kShortTtl).value());
  const Millis too_long = session - zookeeper::certain_part_of(session) + 200ms;
  wait_until([&] { return BootClock::now() - since > too_long; });
  return since;
}

TEST(ZookeeperQueue, GrantLastsFromTheLastSignOfLifeThatWasAnswered) {
  ProxiedZookeeper server;
  RawStore store(server.open_through_proxies());
  const RequestId earlier = new_request();
  ASSERT_TRUE(store.acquire(earlier, kShortTtl));
  ASSERT_EQ(store.release(earlier), ReleaseReply::released);
  const BootTime last_sign = hold_too_long(server.proxy());
  const BootTime before = BootClock::now();
  auto answer =
      std::async(std::launch::async, [&] { return store.acquire(new_request(), kShortTtl); });
  server.proxy().hold(false);
  const auto reply = answer.get();
  if (!reply) {  // on a machine that is very slow
    EXPECT_EQ(reply.error().code, ErrorCode::outcome_unknown) << to_string(reply.error());
    return;
  }
  ASSERT_TRUE(std::holds_alternative<Granted>(*reply));
  const Millis session = zookeeper::session_for(Ttl::of(kShortTtl).value());
  EXPECT_LE(before + std::get<Granted>(*reply).ttl, last_sign + session);
}

TEST(ZookeeperQueue, RenewalWaitsForASignOfLifeThatIsYoungEnough) {
  ProxiedZookeeper server;
  RawStore store(server.open_through_proxies());
  const RequestId request = new_request();
  ASSERT_TRUE(store.acquire(request, kShortTtl));
  hold_too_long(server.proxy());
  const BootTime before = BootClock::now();
  auto answer = std::async(std::launch::async, [&] { return store.try_renew(request, kShortTtl); });
  server.proxy().hold(false);
  const auto reply = answer.get();
  ASSERT_TRUE(reply) << to_string(reply.error());
  if (reply->at(0) == RenewReply::gone) return;  // on a machine that is very slow
  const Millis session = zookeeper::session_for(Ttl::of(kShortTtl).value());
  EXPECT_GE(BootClock::now() - before, zookeeper::handed_on_within(session));
}

// ---- a session that ends under its holder ---------------------------------------------------

TEST(ZookeeperQueue, SessionThatEndsUnderTheHolderIsTold) {
  SessionKey key;
  ProxiedZookeeper server(key.listener());
  RawStore store(server.open_through_proxies());
  const RequestId held = new_request();
  const RequestId waits = new_request();
  const std::int64_t token = store.token(held);
  ASSERT_TRUE(std::holds_alternative<Queued>(store.acquire(waits, 30s, true).value()));
  end_session_behind(server, key, store);
  wait_until([&] { return store.events.was_ended(held); });
  EXPECT_TRUE(store.events.wait_for_nudge(waits, 10s)) << "its place is gone: it has to ask again";
  EXPECT_EQ(store.renew(held), RenewReply::gone);
  EXPECT_EQ(store.release(held), ReleaseReply::not_held);
  const auto next = store.acquire(waits, 30s, true);
  ASSERT_TRUE(next) << to_string(next.error());
  ASSERT_TRUE(std::holds_alternative<Granted>(*next));
  EXPECT_GT(std::get<Granted>(*next).token.value(), token);
}

TEST(ZookeeperQueue, ReplyThatTheLibraryLosesKeepsThePlaceNoLongerThanItsSession) {
  SessionKey key;
  ProxiedZookeeper server(key.listener());
  RawStore store(server.open_through_proxies(), "job", 2s);
  const RequestId request = new_request();
  {
    const ListsAreLost losing;
    const auto unanswered = store.acquire(request, 30s, true);
    ASSERT_FALSE(unanswered);
    EXPECT_EQ(unanswered.error().code, ErrorCode::outcome_unknown);
  }
  end_session_behind(server, key, store);
  ASSERT_TRUE(store.events.wait_for_nudge(request, 30s));
  bool granted = false;
  for (int tries = 0; tries < 10 && !granted; ++tries) {
    const auto reply = store.acquire(request, 30s, true);
    granted = reply && std::holds_alternative<Granted>(*reply);
  }
  EXPECT_TRUE(granted);
}

// ---- what may take long ---------------------------------------------------------------------

// A call of one second is refused while `hang` lasts, and not only after it.
template <class Hang>
void expect_refusal_during(std::optional<Hang>& hang, RawStore& store, Millis ttl) {
  auto answer = std::async(std::launch::async, [&] { return store.acquire(new_request(), ttl); });
  const bool in_time = answer.wait_for(30s) == std::future_status::ready;
  hang.reset();
  EXPECT_TRUE(in_time);
  EXPECT_FALSE(answer.get());
}

TEST(ZookeeperQueue, NameServerThatHangsDoesNotHoldUpCalls) {
  ProxiedZookeeper server;
  RawStore store(server.open(), "job", 1s);
  std::optional<NamesHang> hang(std::in_place);
  expect_refusal_during(hang, store, 5s);  // for which it needs another session
}

TEST(ZookeeperQueue, SessionThatIsSlowToCloseDoesNotHoldUpCalls) {
  SessionKey key;
  ProxiedZookeeper server(key.listener());
  RawStore store(server.open_through_proxies(), "job", 1s);
  std::optional<ClosingHangs> hang(std::in_place);
  end_session_behind(server, key, store);
  hang->wait_for_one();
  const ListsAreLost losing;
  expect_refusal_during(hang, store, 30s);
}

}  // namespace
}  // namespace leasehold::testing
