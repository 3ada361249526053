#include "testing/store_wire_conformance.h"

#include <gmock/gmock.h>

#include <chrono>
#include <future>
#include <stdexcept>
#include <thread>

#include "testing/one_in_time.h"

namespace leasehold::testing {

using namespace std::chrono_literals;
using ::testing::AnyOf;
using ::testing::Eq;

namespace {

constexpr rig::WireFault kFaults[] = {rig::WireFault::cut_before, rig::WireFault::cut_during,
                                      rig::WireFault::cut_after, rig::WireFault::lose_reply};

// What can come over a single call. Last the death of the server that has done it: a call that a
// store makes for the first time may need a round trip more.
struct CallFault {
  rig::WireFault wire;
  bool kills = false;

  bool done() const { return wire == rig::WireFault::lose_reply; }
};
constexpr CallFault kCallFaults[] = {{rig::WireFault::cut_before},
                                     {rig::WireFault::cut_during},
                                     {rig::WireFault::cut_after},
                                     {rig::WireFault::lose_reply},
                                     {rig::WireFault::lose_reply, /*kills=*/true}};
std::string to_string(const CallFault& fault) {
  return fault.kills ? "the server dies" : rig::to_string(fault.wire);
}

// Every fault gets a lock of its own, so that one cannot hide what another left behind.
template <class Fault>
std::string lock_for(const Fault& fault) {
  return "job " + to_string(fault);
}

// A store has no event for what another client did, so it is asked.
void wait_until(const std::function<bool()>& holds) {
  const BootTime late = BootClock::now() + 2min;
  while (!holds()) {
    if (BootClock::now() > late) throw std::runtime_error("what was waited for did not happen");
    std::this_thread::sleep_for(2ms);
  }
}

// A failure must say what is known, and where.
void expect_clear(const Error& error, bool done) {
  if (done) {
    EXPECT_EQ(error.code, ErrorCode::outcome_unknown) << to_string(error);
  } else {
    EXPECT_THAT(error.code, AnyOf(Eq(ErrorCode::outcome_unknown), Eq(ErrorCode::unavailable)))
        << to_string(error);
  }
  EXPECT_NE(error.address.find("127.0.0.1"), std::string::npos)
      << "the address is missing: " << to_string(error);
}

bool held_by(RawStore& direct, const RequestId& request) {
  const auto status = direct.inspect();
  return status && status->holder() && status->holder()->request == request;
}

bool is_free(RawStore& direct) {
  const auto status = direct.inspect();
  return status && !status->holder() && status->waiters.empty();
}

// When the grant ends; long ago if there is none.
BootTime end_of_grant(RawStore& direct) {
  const auto status = direct.inspect();
  return status && status->holder() ? BootClock::now() + status->holder()->remaining : BootTime{};
}

// After a restart a connection may be lost once more, and a write with it.
void wait_until_it_writes(RawStore& store) {
  const RequestId request = new_request();
  wait_until([&] { return store.acquire_another(lock_name("another"), request).has_value(); });
}

// After the server's death what a store knows may be too little to tell for a while.
template <class Ask>
auto ask_until_told(Ask ask) {
  auto answer = ask();
  wait_until([&] {
    if (!answer) answer = ask();
    return answer.has_value();
  });
  return answer;
}

}  // namespace

void StoreWireConformance::arm(rig::WireFault fault) {
  for (rig::TcpProxy* proxy : server->proxies()) proxy->arm(fault);
}

void StoreWireConformance::wait_for_fault(rig::WireFault fault,
                                          const std::function<bool()>& went_through, bool kills) {
  for (rig::TcpProxy* proxy : server->proxies()) {
    EXPECT_TRUE(proxy->wait_for_fault(30s)) << "no request came: " << to_string(fault);
  }
  if (fault != rig::WireFault::lose_reply) return;
  wait_until(went_through);
  if (kills) server->kill();
  cut();
  if (kills) server->start();
}

template <class Call>
auto StoreWireConformance::with_fault(rig::WireFault fault, Call call,
                                      const std::function<bool()>& went_through, bool kills) {
  arm(fault);
  auto answer = std::async(std::launch::async, call);
  wait_for_fault(fault, went_through, kills);
  return answer.get();
}

std::size_t StoreWireConformance::round_trips() {
  std::size_t all = 0;
  for (rig::TcpProxy* proxy : server->proxies()) all += proxy->round_trips();
  return all;
}

void StoreWireConformance::cut() {
  for (rig::TcpProxy* proxy : server->proxies()) proxy->cut();
}
void StoreWireConformance::refuse(bool on) {
  for (rig::TcpProxy* proxy : server->proxies()) proxy->refuse(on);
}
void StoreWireConformance::hold(bool on) {
  for (rig::TcpProxy* proxy : server->proxies()) proxy->hold(on);
}
void StoreWireConformance::heal() {
  for (rig::TcpProxy* proxy : server->proxies()) {
    proxy->disarm();
    proxy->hold(false);
    proxy->refuse(false);
  }
}

// ---- one call, one fault -------------------------------------------------------------------

TEST_P(StoreWireConformance, AcquireSaysWhatIsKnownAndItsRetryIsTheSameGrant) {
  for (const CallFault& fault : kCallFaults) {
    SCOPED_TRACE(to_string(fault));
    RawStore faulty(server->open_through_proxies(), lock_for(fault), 30s);
    RawStore direct(server->open(), lock_for(fault), 30s);
    ASSERT_TRUE(faulty.inspect()) << "it is connected before the fault comes";
    const RequestId request = new_request();
    const auto first = with_fault(
        fault.wire, [&] { return faulty.acquire(request); },
        [&] { return held_by(direct, request); }, fault.kills);
    if (fault.kills)
      for (RawStore* it : {&direct, &faulty}) wait_until_it_writes(*it);
    if (!first) expect_clear(first.error(), fault.done());

    const auto ask = [&] { return faulty.acquire(request); };
    const auto again = fault.kills ? ask_until_told(ask) : ask();
    ASSERT_TRUE(again) << to_string(again.error());
    ASSERT_TRUE(std::holds_alternative<Granted>(*again));
    EXPECT_TRUE(held_by(direct, request));
    const bool same = server->grants_outlive_restarts() || !fault.kills;
    if (fault.done() && same && server->grants_outlive_connections()) {
      EXPECT_FALSE(std::get<Granted>(*again).fresh)
          << "it counts from the call whose reply was lost";
    }
    if (first && same && server->grants_outlive_connections()) {
      EXPECT_EQ(std::get<Granted>(*first).token, std::get<Granted>(*again).token);
    }
    EXPECT_TRUE(std::holds_alternative<Busy>(direct.acquire(new_request()).value()));
    EXPECT_EQ(faulty.release(request), ReleaseReply::released);
    EXPECT_TRUE(is_free(direct)) << "an orphan";
  }
}

TEST_P(StoreWireConformance, RenewSaysWhatIsKnownAndNeverThatALivingGrantIsGone) {
  for (const CallFault& fault : kCallFaults) {
    SCOPED_TRACE(to_string(fault));
    RawStore faulty(server->open_through_proxies(), lock_for(fault), 30s);
    RawStore direct(server->open(), lock_for(fault), 30s);
    const RequestId request = new_request();
    ASSERT_TRUE(faulty.acquire(request, 20s));
    const bool shows = fault.done() && server->tells_remaining();
    const BootTime end = end_of_grant(direct);
    if (shows) wait_until([&] { return BootClock::now() + 18s > end; });  // so that it shows
    const auto first = with_fault(
        fault.wire, [&] { return faulty.try_renew(request, 20s); },
        [&] { return !shows || end_of_grant(direct) > end + 1s; }, fault.kills);
    if (fault.kills)
      for (RawStore* it : {&direct, &faulty}) wait_until_it_writes(*it);
    if (!server->grants_outlive_connections()) {
      if (first) {
        EXPECT_EQ(first->at(0), RenewReply::gone);
      } else {
        expect_clear(first.error(), /*done=*/false);
      }
      wait_until([&] { return is_free(direct); });
      EXPECT_EQ(faulty.renew(request), RenewReply::gone);
      continue;
    }
    if (first) {
      EXPECT_EQ(first->at(0), RenewReply::renewed);
    } else {
      expect_clear(first.error(), /*done=*/false);
    }
    EXPECT_EQ(faulty.renew(request), RenewReply::renewed);
    EXPECT_TRUE(held_by(direct, request));
    EXPECT_EQ(faulty.release(request), ReleaseReply::released);
    EXPECT_TRUE(is_free(direct));
  }
}

TEST_P(StoreWireConformance, ReleaseSaysWhatIsKnownAndFreesOnlyItsOwn) {
  for (const CallFault& fault : kCallFaults) {
    SCOPED_TRACE(to_string(fault));
    RawStore faulty(server->open_through_proxies(), lock_for(fault), 30s);
    RawStore direct(server->open(), lock_for(fault), 30s);
    const RequestId request = new_request();
    ASSERT_TRUE(faulty.acquire(request));
    const auto first = with_fault(
        fault.wire, [&] { return faulty.try_release(request); }, [&] { return is_free(direct); },
        fault.kills);
    if (fault.kills)
      for (RawStore* it : {&direct, &faulty}) wait_until_it_writes(*it);
    if (first) {
      EXPECT_EQ(*first, ReleaseReply::released) << "nobody else can have ended it";
    } else {
      expect_clear(first.error(), fault.done());
    }
    const auto again = faulty.try_release(request);
    ASSERT_TRUE(again) << to_string(again.error());
    wait_until([&] { return is_free(direct); });

    const RequestId next = new_request();
    const auto ask = [&] { return direct.acquire(next); };
    const auto granted = fault.kills ? ask_until_told(ask) : ask();
    ASSERT_TRUE(granted) << to_string(granted.error());
    ASSERT_TRUE(std::holds_alternative<Granted>(*granted));
    ASSERT_TRUE(faulty.try_release(request));
    EXPECT_TRUE(held_by(direct, next)) << "a late release ended its successor";
    EXPECT_EQ(direct.release(next), ReleaseReply::released);
  }
}

TEST_P(StoreWireConformance, KeptLockStaysTakenThoughNobodyWasTold) {
  RawStore faulty(server->open_through_proxies(), "job", 30s);
  if (!faulty.traits().keeps_after_release) return;  // nothing promised
  RawStore direct(server->open(), "job", 30s);
  const RequestId request = new_request();
  ASSERT_TRUE(faulty.acquire(request, 4s));
  const auto kept = [&] {
    const auto status = direct.inspect();
    return status && status->holder() && status->holder()->request == request &&
           status->holder()->kept;
  };
  const auto told = with_fault(
      rig::WireFault::lose_reply, [&] { return faulty.try_release(request, 60s); }, kept);
  if (!told) expect_clear(told.error(), /*done=*/true);
  // The grant's own time, and what its store needs to end what is over.
  const BootTime late = BootClock::now() + 4s + 3s;
  wait_until([&] { return !kept() || BootClock::now() > late; });
  EXPECT_TRUE(kept()) << "its own store has ended it";
}

TEST_P(StoreWireConformance, ForceReleaseSaysWhatIsKnownAndNeverHitsTheSuccessor) {
  for (const CallFault& fault : kCallFaults) {
    SCOPED_TRACE(to_string(fault));
    RawStore faulty(server->open_through_proxies(), lock_for(fault), 30s);
    RawStore direct(server->open(), lock_for(fault), 30s);
    ASSERT_TRUE(faulty.inspect());
    const RequestId seen = new_request();
    ASSERT_TRUE(direct.acquire(seen));
    const auto first = with_fault(
        fault.wire, [&] { return faulty.force_release(seen); },
        [&] { return !held_by(direct, seen); }, fault.kills);
    if (fault.kills)
      for (RawStore* it : {&direct, &faulty}) wait_until_it_writes(*it);
    if (first) {
      EXPECT_EQ(*first, ReleaseReply::released);
    } else {
      expect_clear(first.error(), fault.done());
    }
    const auto again = faulty.force_release(seen);
    ASSERT_TRUE(again) << to_string(again.error());
    wait_until([&] { return is_free(direct); });

    const RequestId successor = new_request();
    const auto ask = [&] { return direct.acquire(successor); };
    const auto granted = fault.kills ? ask_until_told(ask) : ask();
    ASSERT_TRUE(granted) << to_string(granted.error());
    ASSERT_TRUE(std::holds_alternative<Granted>(*granted));
    const auto late = faulty.force_release(seen);
    ASSERT_TRUE(late) << to_string(late.error());
    EXPECT_EQ(*late, ReleaseReply::not_held);
    EXPECT_TRUE(held_by(direct, successor));
    EXPECT_EQ(direct.release(successor), ReleaseReply::released);
  }
}

// ---- a client, which retries ---------------------------------------------------------------

TEST_P(StoreWireConformance, ClientGetsTheLockDespiteEachFault) {
  for (const rig::WireFault fault : kFaults) {
    SCOPED_TRACE(to_string(fault));
    Client faulty = proxied_client();
    RawStore direct(server->open(), lock_for(fault));
    ASSERT_TRUE(faulty.inspect(lock_name(lock_for(fault))));
    auto lease = with_fault(
        fault, [&] { return faulty.acquire(lock_for(fault), {.store_timeout = 30s}); },
        [&] { return direct.inspect().value().holder().has_value(); });
    ASSERT_TRUE(lease) << to_string(lease.error());
    EXPECT_TRUE(held_by(direct, lease->request()));
    EXPECT_TRUE(std::holds_alternative<Busy>(direct.acquire(new_request()).value()));

    const auto outcome = with_fault(
        fault, [&] { return lease->release(); }, [&] { return is_free(direct); });
    const bool honest = outcome ? *outcome == ReleaseOutcome::released
                                : outcome.error().code == ErrorCode::outcome_unknown;
    EXPECT_TRUE(honest);
    EXPECT_TRUE(is_free(direct)) << "an orphan";
  }
}

TEST_P(StoreWireConformance, LeaseOutlivesEachFaultOfItsRenewal) {
  if (!server->grants_outlive_connections()) return;  // told by LeaseEndsWithItsConnection
  for (const rig::WireFault fault : kFaults) {
    SCOPED_TRACE(to_string(fault));
    Client faulty = proxied_client();
    RawStore direct(server->open(), lock_for(fault));
    auto lease = faulty.acquire(lock_for(fault), {.ttl = 6s});
    ASSERT_TRUE(lease) << to_string(lease.error());
    arm(fault);
    wait_for_fault(fault, [] { return true; });
    const BootTime before = lease->deadline();
    wait_until([&] { return lease->deadline() > before || lease->state() == LeaseState::lost; });
    EXPECT_EQ(lease->state(), LeaseState::held);
    EXPECT_TRUE(held_by(direct, lease->request()));
    EXPECT_EQ(lease->release().value(), ReleaseOutcome::released);
  }
}

TEST_P(StoreWireConformance, LeaseEndsWithItsConnection) {
  if (server->grants_outlive_connections()) return;  // told by LeaseOutlivesEachFault…
  Client faulty = proxied_client();
  RawStore direct(server->open());
  auto lease = faulty.acquire("job", {.ttl = 30s});
  ASSERT_TRUE(lease) << to_string(lease.error());
  cut();
  wait_until([&] { return lease->state() == LeaseState::lost; });
  EXPECT_EQ(lease->release().value(), ReleaseOutcome::too_late);
  wait_until([&] { return is_free(direct); });
  EXPECT_TRUE(faulty.acquire("job", {.store_timeout = 30s}));
}

TEST_P(StoreWireConformance, WaiterGetsItsTurnDespiteEachFault) {
  for (const rig::WireFault fault : kFaults) {
    SCOPED_TRACE(to_string(fault));
    RawStore direct(server->open(), lock_for(fault));
    const RequestId holder = new_request();
    ASSERT_TRUE(direct.acquire(holder, 60s));
    Client faulty = proxied_client();
    ASSERT_TRUE(faulty.inspect(lock_name(lock_for(fault))));
    const bool queues = direct.traits().queues;
    const auto waits = [&] { return !queues || direct.inspect().value().waiters.size() == 1; };

    arm(fault);  // when it takes its place
    auto waiting = std::async(std::launch::async, [&] {
      return faulty.acquire(lock_for(fault), {.wait = 60s, .store_timeout = 30s});
    });
    wait_for_fault(fault, waits);
    wait_until(waits);
    const std::size_t before = round_trips();
    cut();                                       // while it waits
    const auto soon = BootClock::now() + 500ms;  // some need no request to wait on
    wait_until([&] { return round_trips() > before || BootClock::now() > soon; });
    wait_until(waits);
    arm(fault);  // when its turn has come
    EXPECT_EQ(direct.release(holder), ReleaseReply::released);
    const auto patience =
        BootClock::now() + 2s;  // it may have been another request of the waiter's
    wait_for_fault(fault, [&] {
      return direct.inspect().value().holder().has_value() || BootClock::now() > patience;
    });
    const auto lease = waiting.get();
    ASSERT_TRUE(lease) << to_string(lease.error());
    // A fault that nobody has met before may yet cut the connection that keeps the lock.
    const bool may_end = !server->grants_outlive_connections();
    wait_until([&] {
      return held_by(direct, lease->request()) || (may_end && lease->state() == LeaseState::lost);
    });
    EXPECT_TRUE(direct.inspect().value().waiters.empty());
  }
}

TEST_P(StoreWireConformance, AbandonedAcquireIsGivenBackWhenTheWireIsBack) {
  Client faulty = proxied_client();
  RawStore direct(server->open());
  ASSERT_TRUE(faulty.inspect(lock_name("job")));
  arm(rig::WireFault::lose_reply);
  auto answer = std::async(std::launch::async,
                           [&] { return faulty.acquire("job", {.ttl = 1h, .store_timeout = 2s}); });
  wait_for_fault(rig::WireFault::lose_reply, [&] {
    if (!direct.inspect().value().holder()) return false;
    refuse(true);
    return true;
  });
  const auto abandoned = answer.get();
  ASSERT_FALSE(abandoned);
  EXPECT_EQ(abandoned.error().code, ErrorCode::outcome_unknown) << to_string(abandoned.error());
  refuse(false);
  wait_until([&] { return is_free(direct); });  // long before its hour is over
}

// ---- a network that hangs, a server that dies ----------------------------------------------

TEST_P(StoreWireConformance, HangingNetworkEndsACallAtItsDeadline) {
  Client faulty = proxied_client();
  RawStore direct(server->open());
  ASSERT_TRUE(faulty.inspect(lock_name("job")));
  hold(true);
  EXPECT_TRUE(one_ends_in_time(4s, [&] {
    const auto hung = faulty.acquire("job", {.ttl = 1h, .store_timeout = 300ms});
    ASSERT_FALSE(hung);
    expect_clear(hung.error(), /*done=*/false);
  })) << "the usual time is five seconds";
  hold(false);
  // What was sent may still be granted now; it is given back long before its hour is over.
  auto lease = faulty.acquire("job", {.wait = 60s, .store_timeout = 30s});
  ASSERT_TRUE(lease) << to_string(lease.error());
  EXPECT_TRUE(held_by(direct, lease->request()));
}

TEST_P(StoreWireConformance, HangingNetworkEndsEveryCallAtItsDeadline) {
  RawStore faulty(server->open_through_proxies(), "job", 1s);
  const RequestId held = new_request();
  ASSERT_TRUE(faulty.acquire(held));
  hold(true);
  const auto expect_an_end = [](const char* what, auto call) {
    const BootTime began = BootClock::now();
    const auto reply = call();
    EXPECT_LT(BootClock::now() - began, 30s) << what;
    ASSERT_FALSE(reply) << what;
    expect_clear(reply.error(), /*done=*/false);
  };
  expect_an_end("renew", [&] { return faulty.try_renew(held); });
  expect_an_end("release", [&] { return faulty.try_release(held); });
  expect_an_end("force-release", [&] { return faulty.force_release(held); });
  expect_an_end("inspect", [&] { return faulty.inspect(); });
  hold(false);
}

TEST_P(StoreWireConformance, HangingNetworkCanBeLeftByStopToken) {
  Client faulty = proxied_client();
  ASSERT_TRUE(faulty.inspect(lock_name("job")));
  hold(true);
  std::stop_source stop;
  auto answer = std::async(std::launch::async, [&] {
    return faulty.acquire("job", {.store_timeout = 10min, .stop = stop.get_token()});
  });
  stop.request_stop();
  const auto left = answer.get();
  ASSERT_FALSE(left);
  EXPECT_THAT(left.error().code, AnyOf(Eq(ErrorCode::cancelled), Eq(ErrorCode::outcome_unknown)));
  hold(false);
}

TEST_P(StoreWireConformance, LeaseIsUncertainThenLostWhileTheServerIsUnreachable) {
  Client faulty = proxied_client();
  auto lease = faulty.acquire("job", {.ttl = 3s});
  ASSERT_TRUE(lease) << to_string(lease.error());
  refuse(true);
  std::promise<BootTime> told;
  const std::stop_callback on_loss(lease->lost(), [&] { told.set_value(BootClock::now()); });
  if (server->grants_outlive_connections()) {
    wait_until([&] { return lease->state() != LeaseState::held; });
    EXPECT_EQ(lease->state(), LeaseState::uncertain);
  }
  EXPECT_LE(told.get_future().get(), lease->deadline() + 3s);
  EXPECT_EQ(lease->state(), LeaseState::lost);
  refuse(false);
  EXPECT_TRUE(faulty.acquire("job", {.wait = 60s, .store_timeout = 30s})) << "it recovers";
}

TEST_P(StoreWireConformance, EverythingRecoversAfterARestartOfTheServer) {
  Client faulty = proxied_client();
  RawStore direct(server->open());
  auto lease = faulty.acquire("job", {.ttl = 60s});
  ASSERT_TRUE(lease) << to_string(lease.error());
  auto waiting = std::async(std::launch::async, [&] {
    return faulty.acquire("job", {.wait = 5min, .store_timeout = 60s});
  });
  if (direct.traits().queues) {
    wait_until([&] { return direct.inspect().value().waiters.size() == 1; });
  }

  server->kill();
  const auto down = faulty.acquire("another", {.store_timeout = 500ms});
  ASSERT_FALSE(down);
  expect_clear(down.error(), /*done=*/false);
  server->start();

  if (server->grants_outlive_connections()) {
    wait_until([&] { return direct.inspect().has_value(); });
    EXPECT_TRUE(held_by(direct, lease->request())) << "honoured";
    EXPECT_NE(lease->state(), LeaseState::lost);
    const auto outcome = lease->release(30s);
    EXPECT_TRUE(outcome && *outcome == ReleaseOutcome::released);
  }
  const auto next = waiting.get();
  ASSERT_TRUE(next) << to_string(next.error());
  EXPECT_NE(lease->state(), LeaseState::held) << "two holders";
  EXPECT_TRUE(held_by(direct, next->request()));
  EXPECT_TRUE(faulty.acquire("another", {.wait = 30s, .store_timeout = 30s}));
}

}  // namespace leasehold::testing
