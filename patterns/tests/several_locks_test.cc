#include "leasehold/several_locks.h"

#include <gmock/gmock.h>

#include <future>
#include <thread>
#include <type_traits>

#include "fake_store.h"
#include "testing/results.h"

namespace leasehold {
namespace {

using namespace std::chrono_literals;
using namespace leasehold::testing;
using ::testing::HasSubstr;

static_assert(std::is_nothrow_move_constructible_v<Leases>);
static_assert(!std::is_copy_constructible_v<FencedLeases>);

class SeveralLocksTest : public LockPatternTest {};

TEST_F(SeveralLocksTest, AllAreTakenInOneOrder) {
  auto held = acquire_all(client, {"b", "ä", "a", "B"});
  ASSERT_TRUE(held) << to_string(held.error());
  std::vector<std::string> order;
  for (const Lease& lease : held->each()) order.push_back(lease.lock().str());
  EXPECT_THAT(order, ::testing::ElementsAre("B", "a", "b", "ä")) << "by their bytes";
  EXPECT_TRUE(held->require(1s));
  EXPECT_EQ(held->find(name("b"))->lock().str(), "b");
  EXPECT_EQ(held->find(name("c")), nullptr);
  for (const char* lock : {"a", "b", "B", "ä"}) EXPECT_FALSE(is_free(lock)) << lock;
  EXPECT_EQ(held->release().value(), ReleaseOutcome::released);
  for (const char* lock : {"a", "b", "B", "ä"}) EXPECT_TRUE(is_free(lock)) << lock;
  EXPECT_EQ(held->release().value(), ReleaseOutcome::too_late);
}

TEST_F(SeveralLocksTest, NoneIsTakenIfOneIsBusyAndItIsNamed) {
  const auto other = client.acquire("b");
  const auto held = acquire_all(client, {"c", "b", "a"});
  ASSERT_TRUE(bad(held, ErrorCode::busy));
  EXPECT_THAT(held.error().message, HasSubstr("nothing was taken, because of 'b'"));
  EXPECT_TRUE(is_free("a")) << "given back before the return";
  EXPECT_EQ(faults->calls(Operation::acquire), 3) << "'c' was not asked for";
}

TEST_F(SeveralLocksTest, WhatWasTakenIsGivenBackBeforeTheReturn) {
  const auto other = client.acquire("b");
  faults->next(Operation::release, Fault::hang);
  auto failing = std::async(std::launch::async, [&] { return acquire_all(client, {"a", "b"}); });
  faults->wait_until_one_hangs();
  EXPECT_EQ(failing.wait_for(20ms), std::future_status::timeout);
  faults->let_go();
  EXPECT_TRUE(bad(failing.get(), ErrorCode::busy));
}

TEST_F(SeveralLocksTest, OneWaitIsForAllOfThem) {
  const auto other = client.acquire("b");
  faults->next(Operation::acquire, Fault::hang);
  auto waiting = std::async(std::launch::async, [&] {
    return acquire_all(client, {"a", "b"}, {.wait = 100ms});
  });
  faults->wait_until_one_hangs();
  const BootTime over = BootClock::now() + 100ms;
  // Time itself is the event.
  while (BootClock::now() < over) std::this_thread::sleep_for(1ms);
  faults->let_go();
  EXPECT_TRUE(bad(waiting.get(), ErrorCode::timeout));
  EXPECT_EQ(faults->calls(Operation::acquire), 3) << "the second was asked for once";
  EXPECT_TRUE(is_free("a"));
}

TEST_F(SeveralLocksTest, CallersWhoNameThemTheOtherWayRoundDoNotBlockEachOther) {
  const auto work = [&](std::initializer_list<std::string_view> locks) {
    for (int i = 0; i < 50; ++i) {
      auto held = acquire_all(client, locks, {.wait = 1min});
      ASSERT_TRUE(held) << to_string(held.error());
      ASSERT_TRUE(held->release());
    }
  };
  auto other = std::async(std::launch::async, [&] { work({"a", "b", "c"}); });
  work({"c", "b", "a"});
  other.get();
}

TEST_F(SeveralLocksTest, TheFirstLossIsTold) {
  auto held = acquire_all(client, {"a", "b", "c"});
  ASSERT_TRUE(held);
  EXPECT_FALSE(held->lost().stop_requested());
  memory.end(held->find(name("b"))->request());
  wait_for(held->lost());
  const auto refused = held->require();
  ASSERT_TRUE(bad(refused, ErrorCode::lost));
  EXPECT_THAT(refused.error().message, HasSubstr("'b'"));
  EXPECT_EQ(held->release().value(), ReleaseOutcome::too_late);
  EXPECT_TRUE(is_free("a") && is_free("c")) << "the others are given back all the same";
}

TEST_F(SeveralLocksTest, LeasesMayBeDestroyedInTheirOwnLossCallback) {
  auto held = std::make_unique<Leases>(acquire_all(client, {"a", "b"}).value());
  std::promise<void> gone;
  const std::stop_token lost = held->lost();
  const RequestId request = held->each().front().request();
  const std::stop_callback callback(lost, [&] {
    held.reset();
    gone.set_value();
  });
  memory.end(request);
  gone.get_future().wait();
}

TEST_F(SeveralLocksTest, WhatIsLostWhileOthersAreWaitedForIsNotHeld) {
  const auto other = client.acquire("b");
  auto waiting = std::async(std::launch::async, [&] {
    return acquire_all(client, {"a", "b"}, {.wait = 1min});
  });
  faults->wait_for_calls(Operation::acquire, 4);
  memory.end(memory.holder(name("a")).value());
  memory.end(other->request());
  const auto held = waiting.get();
  ASSERT_TRUE(bad(held, ErrorCode::lost));
  EXPECT_THAT(held.error().message, HasSubstr("because of 'a'"));
  EXPECT_TRUE(is_free("b"));
}

TEST_F(SeveralLocksTest, LostRepliesTakeEachOnce) {
  faults->next(Operation::acquire, Fault::lose_reply);
  faults->next(Operation::acquire, Fault::lose_request);
  auto held = acquire_all_fenced(client, {"a", "b"});
  ASSERT_TRUE(held) << to_string(held.error());
  for (const FencedLease& lease : held->each()) {
    EXPECT_EQ(lease.token().number.value(), 1) << "granted once";
    EXPECT_EQ(lease.token().lineage.lock, lease.lock());
  }
  faults->next(Operation::release, Fault::lose_request);
  EXPECT_TRUE(held->release());
  EXPECT_TRUE(is_free("a") && is_free("b"));
}

TEST_F(SeveralLocksTest, ReleaseThatFailsIsToldAndTheOthersAreGivenBack) {
  auto held = acquire_all(client, {"a", "b"});
  ASSERT_TRUE(held);
  faults->always(Operation::release, Fault::refuse);
  EXPECT_TRUE(bad(held->release(50ms), ErrorCode::unavailable));
  faults->never(Operation::release);
  for (const char* lock : {"a", "b"}) EXPECT_TRUE(client.acquire(lock, {.wait = 30s})) << lock;
}

TEST_F(SeveralLocksTest, StopEndsTheWaitAndNothingStaysTaken) {
  const auto other = client.acquire("b");
  std::stop_source stop;
  auto waiting = std::async(std::launch::async, [&] {
    return acquire_all(client, {"a", "b"}, {.wait = 1h, .stop = stop.get_token()});
  });
  faults->wait_for_calls(Operation::acquire, 4);
  stop.request_stop();
  EXPECT_TRUE(bad(waiting.get(), ErrorCode::cancelled));
  EXPECT_TRUE(client.acquire("a", {.wait = 30s}));
}

TEST_F(SeveralLocksTest, WrongListsAreRefusedBeforeTheStoreIsAsked) {
  const auto twice = acquire_all(client, {"a", "b", "a"});
  ASSERT_TRUE(bad(twice, ErrorCode::invalid));
  EXPECT_THAT(twice.error().message, HasSubstr("'a' is named twice"));
  EXPECT_TRUE(bad(acquire_all(client, std::vector<LockName>()), ErrorCode::invalid));
  EXPECT_TRUE(bad(acquire_all(client, {"a", ""}), ErrorCode::invalid));
  EXPECT_EQ(faults->calls(Operation::acquire), 0);
}

}  // namespace
}  // namespace leasehold
