// Modes, as only etcd has them: keys and their slots, what a client looks at and what the server
// compares, who hears of what.
#include <gmock/gmock.h>

#include <future>
#include <thread>

#include "etcd_under_test.h"
#include "leasehold/client.h"
#include "testing/raw_store.h"
#include "testing/results.h"
#include "testing/worker.h"

namespace leasehold::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const Mode kTwo = Mode::permit_of(2);

bool waits(const Result<AcquireReply>& reply) {
  return reply && std::holds_alternative<Queued>(*reply);
}
bool is_busy(const Result<AcquireReply>& reply) {
  return reply && std::holds_alternative<Busy>(*reply);
}
std::optional<Granted> granted(const Result<AcquireReply>& reply) {
  if (!reply || !std::holds_alternative<Granted>(*reply)) return std::nullopt;
  return std::get<Granted>(*reply);
}
std::optional<Slot> slot_of(const Result<AcquireReply>& reply) {
  const auto grant = granted(reply);
  return grant ? grant->slot : std::nullopt;
}

class EtcdModesTest : public ::testing::Test {
 protected:
  std::string ctl(std::vector<std::string> words) {
    return etcd.server().ctl(std::move(words)).out;
  }
  std::string key(const std::string& rest) const { return etcd.prefix() + "/" + rest; }
  std::string permit_key(const RequestId& request, const std::string& number = "2") const {
    return key("job/permit-" + number + "-" + request.hex());
  }
  std::string slot_key(const std::string& number) const { return key("!slot/job/" + number); }
  bool is_there(const std::string& key) { return !ctl({"get", "--keys-only", key}).empty(); }
  // "\"Lease\" : 7587848" of the one key there, as etcdctl writes it.
  std::string lease_of(const std::string& key) {
    const std::string fields = ctl({"get", key, "-w", "fields"});
    const std::size_t at = fields.find("\"Lease\" : ");
    if (at == std::string::npos) throw std::runtime_error("no such key: " + key);
    return fields.substr(at + 10, fields.find('\n', at) - at - 10);
  }
  void revoke(const std::string& lease) {
    char hex[32];
    std::snprintf(hex, sizeof hex, "%llx", std::stoull(lease));
    ASSERT_EQ(etcd.server().ctl({"lease", "revoke", hex}).status, 0);
  }
  std::unique_ptr<Store> open_through(const rig::TcpProxy& wire) {
    return std::move(open_etcd("etcd://" + wire.address() + "/" + etcd.prefix()).value());
  }

  EtcdUnderTest etcd;
};

// ---- round trips ---------------------------------------------------------------------------

TEST_F(EtcdModesTest, SharedIsOneRoundTripAndAPermitBesideOthersIsTwo) {
  rig::TcpProxy& wire = *etcd.proxies().front();
  Client one(etcd.open_through_proxies());
  ASSERT_TRUE(one.acquire("job", {.ttl = 60s})->release());  // connects, makes the lease
  const auto trips = [&](const std::string& lock, Mode mode, Millis wait, std::size_t most) {
    const std::size_t before = wire.round_trips();
    auto lease = one.acquire(lock, {.ttl = 60s, .wait = wait, .mode = mode});
    ASSERT_TRUE(lease) << to_string(lease.error());
    EXPECT_EQ(wire.round_trips(), before + most) << to_string(mode);
    ASSERT_TRUE(lease->release());
    EXPECT_EQ(wire.round_trips(), before + most + 1) << "its release is one";
  };
  Client other(etcd.open());
  for (const Millis wait : {Millis(0), Millis(5s)}) {
    trips("job", Mode::exclusive(), wait, 1);
    trips("job", Mode::shared(), wait, 1);
    trips("job", kTwo, wait, 1);
    {
      const auto reader = other.acquire("job", {.mode = Mode::shared()});
      trips("job", Mode::shared(), wait, 1);
    }
    const auto permit = other.acquire("gpu", {.mode = kTwo});
    trips("gpu", kTwo, wait, 2);
  }
  ASSERT_TRUE(other.set_permits(lock_name("set"), 2));
  trips("set", kTwo, 0s, 1);
}

TEST_F(EtcdModesTest, BusyLeavesNothing) {
  RawStore raw(etcd.open());
  for (const Mode used : {Mode::exclusive(), Mode::permit_of(1)}) {
    const RequestId holder = new_request();
    ASSERT_TRUE(granted(raw.acquire_as(used, holder)));
    EXPECT_TRUE(is_busy(raw.acquire_as(used.is_permit() ? used : Mode::shared(), new_request())));
    raw.release(holder);
    EXPECT_EQ(ctl({"get", "--prefix", "--keys-only", key("job")}), "");
    EXPECT_EQ(ctl({"get", "--prefix", "--keys-only", slot_key("")}), "");
  }
}

// ---- slots ---------------------------------------------------------------------------------

// Whoever is called late must not come to a fence with a token below that of a holder before it.
TEST_F(EtcdModesTest, PermitsHaveTheirTokensInTheOrderOfTheirGrants) {
  RawStore raw(etcd.open());
  const std::vector<RequestId> holders = {new_request(), new_request()};
  for (const RequestId& it : holders) ASSERT_TRUE(granted(raw.acquire_as(kTwo, it)));
  const RequestId first = new_request();
  const RequestId second = new_request();
  ASSERT_TRUE(waits(raw.acquire_as(kTwo, first, true)));
  ASSERT_TRUE(waits(raw.acquire_as(kTwo, second, true)));
  for (const RequestId& it : holders) raw.release(it);
  const auto late = granted(raw.acquire_as(kTwo, second, true));
  ASSERT_TRUE(late);
  EXPECT_EQ(late->slot, Slot{1}) << "the lower one is for who came before";
  EXPECT_EQ(raw.release(second), ReleaseReply::released);
  const auto next = granted(raw.acquire_as(kTwo, first, true));
  ASSERT_TRUE(next);
  EXPECT_GT(next->token, late->token);
  EXPECT_EQ(raw.inspect()->holders.at(0).token, next->token);
}

TEST_F(EtcdModesTest, TwoThatLookAtTheSameTimeDoNotTakeOneSlot) {
  RawStore other(etcd.open());
  const Mode three = Mode::permit_of(3);
  ASSERT_TRUE(granted(other.acquire_as(three, new_request())));
  std::optional<Result<AcquireReply>> between;
  rig::TcpProxy wire(etcd.server().port(), [&](std::string_view bytes) {
    const bool takes_slot = bytes.find("!slot/job/1") != std::string_view::npos;
    if (takes_slot && !between) between = other.acquire_as(three, new_request());
    return is_lock_request(bytes);
  });
  RawStore one(open_through(wire));
  const auto mine = one.acquire_as(three, new_request());
  ASSERT_TRUE(between && granted(*between));
  EXPECT_EQ(slot_of(*between), Slot{1});
  EXPECT_EQ(slot_of(mine), Slot{2});
}

// Both have a place, and both are called at the same time.
TEST_F(EtcdModesTest, TwoWaitersThatLookAtTheSameTimeDoNotTakeOneSlot) {
  RawStore other(etcd.open());
  const std::vector<RequestId> holders = {new_request(), new_request()};
  for (const RequestId& it : holders) ASSERT_TRUE(granted(other.acquire_as(kTwo, it)));
  const RequestId first = new_request();
  const RequestId second = new_request();
  std::optional<Result<AcquireReply>> between;
  bool watches = false;
  rig::TcpProxy wire(etcd.server().port(), [&](std::string_view bytes) {
    const bool takes_slot = watches && bytes.find("!slot/job/1") != std::string_view::npos;
    if (takes_slot && !between) {
      other.release(first);  // so that the second finds the lower slot free, if it looks again
      between = other.acquire_as(kTwo, new_request());
    }
    return is_lock_request(bytes);
  });
  RawStore one(open_through(wire));
  ASSERT_TRUE(waits(other.acquire_as(kTwo, first, true)));
  ASSERT_TRUE(waits(one.acquire_as(kTwo, second, true)));
  for (const RequestId& it : holders) other.release(it);
  watches = true;
  const auto mine = granted(one.acquire_as(kTwo, second, true));
  ASSERT_TRUE(mine);
  ASSERT_TRUE(between);
  if (const auto theirs = slot_of(*between)) EXPECT_NE(mine->slot, theirs);
  EXPECT_THAT(one.inspect()->holders, SizeIs(granted(*between) ? 2 : 1));
}

TEST_F(EtcdModesTest, NobodyComesInBetweenThoughItLookedBefore) {
  RawStore other(etcd.open());
  ASSERT_TRUE(granted(other.acquire_as(kTwo, new_request())));
  bool done = false;
  rig::TcpProxy wire(etcd.server().port(), [&](std::string_view bytes) {
    const bool takes_slot = bytes.find("!slot/job/1") != std::string_view::npos;
    if (takes_slot && !std::exchange(done, true)) {
      const RequestId gone = new_request();
      EXPECT_EQ(slot_of(other.acquire_as(kTwo, gone)), Slot{1});
      EXPECT_TRUE(waits(other.acquire_as(kTwo, new_request(), true)));
      other.release(gone);  // the slot is free, but who waits for it came before
    }
    return is_lock_request(bytes);
  });
  RawStore one(open_through(wire));
  EXPECT_TRUE(is_busy(one.acquire_as(kTwo, new_request())));
  EXPECT_TRUE(done);
}

TEST_F(EtcdModesTest, SlotIsFreeWhenItsHoldersKeyIsGoneHoweverItWent) {
  RawStore raw(etcd.open());
  const RequestId lost = new_request();
  ASSERT_EQ(slot_of(raw.acquire_as(kTwo, lost)), Slot{0});
  const RequestId other = new_request();
  ASSERT_EQ(slot_of(raw.acquire_as(kTwo, other)), Slot{1});
  ASSERT_EQ(ctl({"del", permit_key(lost)}), "1\n");
  EXPECT_THAT(raw.inspect()->holders, SizeIs(1));
  EXPECT_EQ(raw.renew(lost), RenewReply::gone);
  const RequestId next = new_request();
  EXPECT_EQ(slot_of(raw.acquire_as(kTwo, next)), Slot{0});
  EXPECT_EQ(raw.release(lost), ReleaseReply::not_held);
  EXPECT_EQ(raw.renew(next), RenewReply::renewed) << "its slot is not the other one's any more";
  EXPECT_EQ(raw.force_release(next).value(), ReleaseReply::released);
  EXPECT_FALSE(is_there(slot_key("0")));
}

// By hand, or by a later version.
TEST_F(EtcdModesTest, SlotThatCannotBeReadIsTakenBySomebodyUnknown) {
  const Mode one = Mode::permit_of(1);
  RawStore raw(etcd.open());
  const RequestId waiter = new_request();
  const RequestId holder = new_request();
  ASSERT_TRUE(granted(raw.acquire_as(one, holder)));
  ASSERT_TRUE(waits(raw.acquire_as(one, waiter, true)));
  ASSERT_EQ(etcd.server().ctl({"put", slot_key("0"), "later version"}).status, 0);
  raw.release(holder);
  ASSERT_EQ(etcd.server().ctl({"put", slot_key("0"), "later version"}).status, 0);
  const auto behind = raw.acquire_as(one, waiter, true);
  ASSERT_TRUE(waits(behind)) << to_string(behind.error());
  EXPECT_THAT(std::get<Queued>(*behind).ahead,
              AllOf(HasSubstr("another"), HasSubstr("slot/job/0")));
  raw.release(waiter);
  for (const bool queue : {false, true}) {
    const RequestId request = new_request();
    const auto reply = raw.acquire_as(one, request, queue);
    ASSERT_TRUE(queue ? waits(reply) : is_busy(reply));
    EXPECT_THAT(queue ? std::get<Queued>(*reply).ahead : std::get<Busy>(*reply).ahead,
                AllOf(HasSubstr("another"), HasSubstr("slot/job/0")));
    raw.release(request);
  }
  const RequestId next = new_request();
  ASSERT_TRUE(waits(raw.acquire_as(one, next, true)));
  ASSERT_EQ(ctl({"del", slot_key("0")}), "1\n");
  EXPECT_EQ(slot_of(raw.acquire_as(one, next, true)), Slot{0});
}

TEST_F(EtcdModesTest, GrantWithoutItsSlotIsOver) {
  RawStore raw(etcd.open());
  const RequestId request = new_request();
  ASSERT_TRUE(granted(raw.acquire_as(kTwo, request)));
  ASSERT_EQ(ctl({"del", slot_key("0")}), "1\n");
  EXPECT_EQ(raw.renew(request), RenewReply::gone);
}

TEST_F(EtcdModesTest, RenewalAndKeepingTakeTheSlotWithThem) {
  RawStore raw(etcd.open());
  const RequestId request = new_request();
  ASSERT_TRUE(granted(raw.acquire_as(kTwo, request, false, 20s)));
  const std::string before = lease_of(slot_key("0"));
  ASSERT_EQ(raw.try_renew(request, 40s).value().at(0), RenewReply::renewed);
  EXPECT_NE(lease_of(slot_key("0")), before);
  EXPECT_EQ(lease_of(slot_key("0")), lease_of(permit_key(request)));
  revoke(before);
  EXPECT_EQ(raw.try_renew(request, 40s).value().at(0), RenewReply::renewed);
  ASSERT_EQ(raw.try_release(request, 1h).value(), ReleaseReply::released);
  EXPECT_EQ(lease_of(slot_key("0")), lease_of(permit_key(request)));
  const auto status = raw.inspect().value();
  EXPECT_TRUE(status.holders.at(0).kept);
  EXPECT_EQ(status.holders.at(0).slot, Slot{0});
  EXPECT_EQ(slot_of(raw.acquire_as(kTwo, new_request())), Slot{1});
}

TEST_F(EtcdModesTest, AllOfManyPermitsAreRenewedTogether) {
  constexpr int permits = 120;  // more than one transaction takes
  RawStore raw(etcd.open());
  std::vector<RenewCall> calls;
  for (int i = 0; i < permits; ++i) {
    const RequestId request = new_request();
    ASSERT_TRUE(granted(raw.acquire_as(Mode::permit_of(permits), request)));
    calls.push_back({lock_name("job"), request, Ttl::of(30s).value()});
  }
  ASSERT_EQ(ctl({"del", slot_key("77")}), "1\n");
  const auto replies = raw.renew_together(calls);
  ASSERT_TRUE(replies) << to_string(replies.error());
  for (int i = 0; i < permits; ++i) {
    EXPECT_EQ(replies->at(i), i == 77 ? RenewReply::gone : RenewReply::renewed) << i;
  }
}

// ---- who waits -----------------------------------------------------------------------------

TEST_F(EtcdModesTest, OnlyTheFirstWhoWaitsIsCalledAndItCallsTheNext) {
  RawStore raw(etcd.open());
  const std::vector<RequestId> holders = {new_request(), new_request()};
  const std::vector<RequestId> waiters = {new_request(), new_request(), new_request()};
  for (const RequestId& it : holders) ASSERT_TRUE(granted(raw.acquire_as(kTwo, it)));
  for (const RequestId& it : waiters) ASSERT_TRUE(waits(raw.acquire_as(kTwo, it, true)));
  raw.events.forget_nudges();
  raw.release(holders[0]);
  ASSERT_TRUE(raw.events.wait_for_nudge(waiters[0], 30s));
  raw.release(holders[1]);
  ASSERT_TRUE(granted(raw.acquire_as(kTwo, waiters[0], true)));
  ASSERT_TRUE(raw.events.wait_for_nudge(waiters[1], 30s)) << "of one that was free already";
  ASSERT_TRUE(granted(raw.acquire_as(kTwo, waiters[1], true)));
  ASSERT_TRUE(raw.events.wait_for_nudge(waiters[2], 30s));
  EXPECT_TRUE(waits(raw.acquire_as(kTwo, waiters[2], true)));
  raw.events.forget_nudges();
  raw.release(waiters[1]);
  ASSERT_TRUE(raw.events.wait_for_nudge(waiters[2], 30s)) << "whichever of the holders it is";
  EXPECT_TRUE(granted(raw.acquire_as(kTwo, waiters[2], true)));
}

TEST_F(EtcdModesTest, HandOverOfAPermitWakesOneOfMany) {
  RawStore raw(etcd.open());
  const RequestId holder = new_request();
  ASSERT_TRUE(granted(raw.acquire_as(Mode::permit_of(1), holder)));
  std::vector<RequestId> waiters;
  for (int i = 0; i < 8; ++i) {
    waiters.push_back(new_request());
    ASSERT_TRUE(waits(raw.acquire_as(Mode::permit_of(1), waiters.back(), true)));
  }
  raw.events.forget_nudges();
  raw.release(holder);
  ASSERT_TRUE(raw.events.wait_for_nudge(waiters[0], 30s));
  ASSERT_TRUE(granted(raw.acquire_as(Mode::permit_of(1), waiters[0], true)));
  ASSERT_TRUE(raw.events.wait_for_nudge(waiters[1], 30s));
  EXPECT_TRUE(waits(raw.acquire_as(Mode::permit_of(1), waiters[1], true)));
  EXPECT_LE(raw.events.nudges(), 2u);
}

TEST_F(EtcdModesTest, WhoLeavesTheQueueIsNoticedByTheNext) {
  RawStore raw(etcd.open());
  const RequestId holder = new_request();
  const Mode one = Mode::permit_of(1);
  const std::vector<RequestId> waiters = {new_request(), new_request(), new_request()};
  ASSERT_TRUE(granted(raw.acquire_as(one, holder)));
  for (const RequestId& it : waiters) ASSERT_TRUE(waits(raw.acquire_as(one, it, true)));
  raw.events.forget_nudges();
  raw.release(waiters[1]);
  ASSERT_TRUE(raw.events.wait_for_nudge(waiters[2], 30s));
  EXPECT_TRUE(waits(raw.acquire_as(one, waiters[2], true)));
  raw.release(waiters[0]);
  ASSERT_TRUE(raw.events.wait_for_nudge(waiters[2], 30s));
  EXPECT_TRUE(waits(raw.acquire_as(one, waiters[2], true)));
  raw.events.forget_nudges();
  raw.release(holder);
  ASSERT_TRUE(raw.events.wait_for_nudge(waiters[2], 30s));
  EXPECT_TRUE(granted(raw.acquire_as(one, waiters[2], true)));
}

TEST_F(EtcdModesTest, WaiterWhoseWatchBeganLateLooksOnceMoreAndRests) {
  RawStore holder(etcd.open());
  ASSERT_TRUE(granted(holder.acquire_as(Mode::permit_of(1), new_request())));
  RawStore waiter(etcd.open_through_proxies());
  const RequestId request = new_request();
  ASSERT_TRUE(waiter.inspect()) << "it is connected";
  etcd.proxies().front()->delay(300ms);  // so long is its watch on its way
  ASSERT_TRUE(waits(waiter.acquire_as(Mode::permit_of(1), request, true)));
  ctl({"put", key("else/where"), "now"});
  ASSERT_TRUE(waiter.events.wait_for_nudge(request, 30s));
  EXPECT_TRUE(waits(waiter.acquire_as(Mode::permit_of(1), request, true)));
  ctl({"put", key("else/where"), "and now"});
  waiter.events.forget_nudges();
  EXPECT_FALSE(waiter.events.wait_for_nudge(request, 2s)) << "for nothing";
}

TEST_F(EtcdModesTest, MorePermitsReachAllWhoWait) {
  RawStore raw(etcd.open());
  const RequestId holder = new_request();
  const Mode one = Mode::permit_of(1);
  const std::vector<RequestId> waiters = {new_request(), new_request()};
  ASSERT_TRUE(raw.set_permits(1));
  ASSERT_TRUE(granted(raw.acquire_as(one, holder)));
  for (const RequestId& it : waiters) ASSERT_TRUE(waits(raw.acquire_as(one, it, true)));
  raw.events.forget_nudges();
  ASSERT_TRUE(raw.set_permits(3));
  for (const RequestId& it : waiters) {
    ASSERT_TRUE(raw.events.wait_for_nudge(it, 30s));
    EXPECT_TRUE(granted(raw.acquire_as(one, it, true)));
  }
}

TEST_F(EtcdModesTest, FewerPermitsAreGivenOutWhenEnoughHaveComeBack) {
  RawStore raw(etcd.open());
  ASSERT_TRUE(raw.set_permits(3));
  const std::vector<RequestId> holders = {new_request(), new_request(), new_request()};
  for (const RequestId& it : holders) ASSERT_TRUE(granted(raw.acquire_as(Mode::permit_of(3), it)));
  ASSERT_TRUE(raw.set_permits(1));
  const RequestId waiter = new_request();
  ASSERT_TRUE(waits(raw.acquire_as(Mode::permit_of(1), waiter, true)));
  for (const RequestId& it : holders) {
    EXPECT_TRUE(waits(raw.acquire_as(Mode::permit_of(1), waiter, true)));
    raw.events.forget_nudges();
    raw.release(it);
    ASSERT_TRUE(raw.events.wait_for_nudge(waiter, 30s));
  }
  EXPECT_EQ(slot_of(raw.acquire_as(Mode::permit_of(1), waiter, true)), Slot{0});
}

TEST_F(EtcdModesTest, WhoCameLaterAndHasAPermitCountsToo) {
  RawStore raw(etcd.open());
  const Mode one = Mode::permit_of(1);
  const RequestId holder = new_request();
  const RequestId waiter = new_request();
  const RequestId later = new_request();
  ASSERT_TRUE(raw.set_permits(1));
  ASSERT_TRUE(granted(raw.acquire_as(one, holder)));
  ASSERT_TRUE(waits(raw.acquire_as(one, waiter, true)));
  ASSERT_TRUE(raw.set_permits(3));
  ASSERT_EQ(slot_of(raw.acquire_as(Mode::permit_of(3), later)), Slot{2});
  ASSERT_TRUE(raw.set_permits(1));
  raw.release(holder);
  EXPECT_TRUE(waits(raw.acquire_as(one, waiter, true))) << "one has come back, and one is out";
  raw.events.forget_nudges();
  raw.release(later);
  ASSERT_TRUE(raw.events.wait_for_nudge(waiter, 30s));
  EXPECT_EQ(slot_of(raw.acquire_as(one, waiter, true)), Slot{0});
}

TEST_F(EtcdModesTest, HandOverOfTheOnlyPermitIsOneTransaction) {
  RawStore other(etcd.open());
  const Mode one = Mode::permit_of(1);
  const RequestId holder = new_request();
  const RequestId waiter = new_request();
  ASSERT_TRUE(granted(other.acquire_as(one, holder)));
  rig::TcpProxy wire(etcd.server().port(), is_any_message);
  RawStore raw(open_through(wire));
  ASSERT_TRUE(waits(raw.acquire_as(one, waiter, true)));
  other.release(holder);
  ASSERT_TRUE(raw.events.wait_for_nudge(waiter, 30s));
  std::atomic<int> transactions = 0;
  wire.arm(rig::WireFault::lose_reply, [&](std::string_view bytes) {
    if (bytes.find("!slot/job") != std::string_view::npos) ++transactions;
    return false;
  });
  EXPECT_TRUE(granted(raw.acquire_as(one, waiter, true)));
  EXPECT_EQ(transactions, 1);
  wire.disarm();
}

TEST_F(EtcdModesTest, WaiterWhoseLeaseDiedIsNotGranted) {
  for (const Mode mode : {Mode::shared(), Mode::permit_of(1)}) {
    RawStore other(etcd.open());
    const RequestId holder = new_request();
    const Mode used = mode.is_permit() ? mode : Mode::exclusive();
    ASSERT_TRUE(granted(other.acquire_as(used, holder)));
    RawStore raw(etcd.open());
    const RequestId waiter = new_request();
    ASSERT_TRUE(waits(raw.acquire_as(mode, waiter, true)));
    const std::string leaf = (mode.is_permit() ? "permit-1-" : "shared-") + waiter.hex();
    revoke(lease_of(key("job/" + leaf)));
    const RequestId next = new_request();
    ASSERT_TRUE(waits(other.acquire_as(used, next, true)));
    other.release(holder);
    EXPECT_TRUE(waits(raw.acquire_as(mode, waiter, true))) << "it came last now";
    ASSERT_TRUE(granted(other.acquire_as(used, next, true)));
    EXPECT_TRUE(waits(raw.acquire_as(mode, waiter, true)));
    other.release(next);
    EXPECT_TRUE(granted(raw.acquire_as(mode, waiter, true)));
    raw.release(waiter);
  }
}

// ---- one kind of use -----------------------------------------------------------------------

TEST_F(EtcdModesTest, OtherProgramsInTheFolderAreExclusive) {
  RawStore raw(etcd.open());
  for (const std::string leaf : {"694d7f", "worker-1", "shared", "permits", "zzz", ""}) {
    const std::string foreign = key("job/" + leaf);
    ASSERT_EQ(etcd.server().ctl({"put", foreign, ""}).status, 0);
    EXPECT_TRUE(is_busy(raw.acquire_as(Mode::shared(), new_request()))) << leaf;
    EXPECT_TRUE(bad(raw.acquire_as(kTwo, new_request()), ErrorCode::invalid)) << leaf;
    EXPECT_EQ(raw.set_permits(2).error().code, ErrorCode::invalid);
    const RequestId waiter = new_request();
    ASSERT_TRUE(waits(raw.acquire_as(Mode::shared(), waiter, true)));
    EXPECT_TRUE(raw.inspect()->holders.at(0).foreign);
    ASSERT_EQ(ctl({"del", foreign}), "1\n");
    ASSERT_TRUE(raw.events.wait_for_nudge(waiter, 30s)) << leaf;
    ASSERT_EQ(etcd.server().ctl({"put", foreign, ""}).status, 0);
    EXPECT_TRUE(granted(raw.acquire_as(Mode::shared(), waiter, true)))
        << leaf << ": that one came behind";
    EXPECT_TRUE(is_busy(raw.acquire_as(Mode::shared(), new_request()))) << leaf;
    EXPECT_FALSE(raw.inspect()->holders.at(0).foreign);
    raw.release(waiter);
    ASSERT_EQ(ctl({"del", foreign}), "1\n");
  }
}

TEST_F(EtcdModesTest, NobodyElseTakesAPlaceBehindPermits) {
  RawStore holder(etcd.open());
  const LockName other = lock_name("other");
  ASSERT_TRUE(granted(holder.acquire_another(other, new_request())));
  ASSERT_TRUE(granted(holder.acquire_as(kTwo, new_request())));
  RawStore raw(etcd.open());
  ASSERT_TRUE(waits(raw.acquire_another(other, new_request(), 30s, /*queue=*/true)))
      << "and has a lease for places from now on";
  for (const Mode mode : {Mode::exclusive(), Mode::shared(), Mode::permit_of(3)}) {
    EXPECT_TRUE(bad(raw.acquire_as(mode, new_request(), true), ErrorCode::invalid));
  }
  EXPECT_THAT(raw.inspect()->waiters, IsEmpty());
}

TEST_F(EtcdModesTest, KindIsComparedWhenThePlaceIsTaken) {
  RawStore other(etcd.open());
  RawStore holder(etcd.open());
  bool done = false;
  const RequestId first = new_request();
  ASSERT_TRUE(granted(holder.acquire_as(Mode::permit_of(1), first)));
  rig::TcpProxy wire(etcd.server().port(), [&](std::string_view bytes) {
    const bool takes_place = bytes.find("1 waits ") != std::string_view::npos;
    if (takes_place && !std::exchange(done, true)) {
      holder.release(first);
      EXPECT_TRUE(granted(other.acquire_as(Mode::exclusive(), new_request())));
    }
    return is_lock_request(bytes);
  });
  RawStore one(open_through(wire));
  const auto refused = one.acquire_as(Mode::permit_of(1), new_request(), true);
  EXPECT_TRUE(done);
  ASSERT_TRUE(bad(refused, ErrorCode::invalid));
  EXPECT_THAT(refused.error().message, HasSubstr("without permits (exclusive)"));
  EXPECT_THAT(one.inspect()->waiters, IsEmpty());
}

TEST_F(EtcdModesTest, NumberIsComparedWhenTheSlotIsTaken) {
  RawStore other(etcd.open());
  ASSERT_TRUE(granted(other.acquire_as(kTwo, new_request())));
  bool done = false;
  rig::TcpProxy wire(etcd.server().port(), [&](std::string_view bytes) {
    const bool takes_slot = bytes.find("!slot/job/1") != std::string_view::npos;
    if (takes_slot && !std::exchange(done, true)) EXPECT_TRUE(other.set_permits(1));
    return is_lock_request(bytes);
  });
  RawStore one(open_through(wire));
  const auto refused = one.acquire_as(kTwo, new_request());
  EXPECT_TRUE(done);
  ASSERT_TRUE(bad(refused, ErrorCode::invalid));
  EXPECT_THAT(refused.error().message, HasSubstr("has 1 permit, which its operator has set"));
  EXPECT_THAT(one.inspect()->holders, SizeIs(1));
}

TEST_F(EtcdModesTest, LockAtTheNameIsExclusiveForAllModes) {
  RawStore raw(etcd.open());
  const std::string granted_lease = ctl({"lease", "grant", "600"});
  const std::string lease = granted_lease.substr(6, granted_lease.find(' ', 6) - 6);
  const auto put = [&] { ctl({"put", key("job"), "value", "--lease=" + lease}); };
  put();
  EXPECT_TRUE(is_busy(raw.acquire_as(Mode::shared(), new_request())));
  EXPECT_TRUE(bad(raw.acquire_as(kTwo, new_request()), ErrorCode::invalid));
  EXPECT_EQ(raw.set_permits(2).error().code, ErrorCode::invalid);
  const RequestId reader = new_request();
  ASSERT_TRUE(waits(raw.acquire_as(Mode::shared(), reader, true)));
  ASSERT_EQ(ctl({"del", key("job")}), "1\n");
  ASSERT_TRUE(raw.events.wait_for_nudge(reader, 30s));
  ASSERT_TRUE(granted(raw.acquire_as(Mode::shared(), reader, true)));
  raw.release(reader);

  const RequestId first = new_request();
  const RequestId second = new_request();
  ASSERT_TRUE(granted(raw.acquire_as(Mode::permit_of(1), first)));
  ASSERT_TRUE(waits(raw.acquire_as(Mode::permit_of(1), second, true)));
  put();  // by one that does not look
  raw.release(first);
  EXPECT_TRUE(waits(raw.acquire_as(Mode::permit_of(1), second, true)));
  raw.events.forget_nudges();
  ASSERT_EQ(ctl({"del", key("job")}), "1\n");
  ASSERT_TRUE(raw.events.wait_for_nudge(second, 30s));
  EXPECT_TRUE(granted(raw.acquire_as(Mode::permit_of(1), second, true)));
}

TEST_F(EtcdModesTest, LockThatComesToTheNameIsSeenWhenTheSlotIsTaken) {
  RawStore other(etcd.open());
  ASSERT_TRUE(granted(other.acquire_as(kTwo, new_request())));
  const std::string granted_lease = ctl({"lease", "grant", "600"});
  const std::string lease = granted_lease.substr(6, granted_lease.find(' ', 6) - 6);
  bool done = false;
  rig::TcpProxy wire(etcd.server().port(), [&](std::string_view bytes) {
    const bool takes_slot = bytes.find("!slot/job/1") != std::string_view::npos;
    if (takes_slot && !std::exchange(done, true)) {
      ctl({"put", key("job"), "value", "--lease=" + lease});
    }
    return is_lock_request(bytes);
  });
  RawStore one(open_through(wire));
  EXPECT_TRUE(is_busy(one.acquire_as(kTwo, new_request())));
  EXPECT_TRUE(done);
}

// ---- two faults ----------------------------------------------------------------------------

class LostReplyTest : public EtcdModesTest {
 protected:
  // A grant of which `one` hears nothing; `says`: what its transaction has in it.
  Result<AcquireReply> lose(const RequestId& request, Mode mode, bool queue = false,
                            const std::string& says = "1 held ") {
    wire.arm(rig::WireFault::lose_reply,
             [says](std::string_view bytes) { return bytes.find(says) != std::string_view::npos; });
    auto told =
        std::async(std::launch::async, [&] { return one.acquire_as(mode, request, queue); });
    EXPECT_TRUE(wire.wait_for_fault(30s));
    const BootTime patience = BootClock::now() + 30s;
    while (!holds(request) && BootClock::now() < patience) std::this_thread::sleep_for(1ms);
    wire.cut();
    return told.get();
  }
  bool holds(const RequestId& request) {
    const auto holders = other.inspect().value().holders;
    return std::any_of(holders.begin(), holders.end(),
                       [&](const auto& it) { return it.request == request; });
  }

  rig::TcpProxy& wire = *etcd.proxies().front();
  RawStore one{etcd.open_through_proxies()};
  RawStore other{etcd.open()};
};

TEST_F(LostReplyTest, RetryGetsTheSlotThoughAnOperatorHasSetFewer) {
  ASSERT_TRUE(granted(other.acquire_as(kTwo, new_request())));
  const RequestId request = new_request();
  ASSERT_TRUE(bad(lose(request, kTwo, false, "!slot/job/1"), ErrorCode::outcome_unknown));
  const TokenNumber token = other.inspect()->holders.at(1).token;
  ASSERT_TRUE(other.set_permits(1));
  const auto again = granted(one.acquire_as(kTwo, request));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->slot, Slot{1});
  EXPECT_EQ(again->token, token);
  EXPECT_FALSE(again->fresh);
  EXPECT_EQ(one.renew(request), RenewReply::renewed);
}

TEST_F(LostReplyTest, WaiterThatGivesUpThenGivesItsSlotBack) {
  const RequestId holder = new_request();
  ASSERT_TRUE(granted(other.acquire_as(Mode::permit_of(1), holder)));
  const RequestId request = new_request();
  ASSERT_TRUE(waits(one.acquire_as(Mode::permit_of(1), request, true)));
  other.release(holder);
  ASSERT_TRUE(bad(lose(request, Mode::permit_of(1), true), ErrorCode::outcome_unknown));
  EXPECT_EQ(one.release(request), ReleaseReply::released);
  EXPECT_FALSE(is_there(slot_key("0")));
  EXPECT_EQ(slot_of(other.acquire_as(Mode::permit_of(1), new_request())), Slot{0});
}

TEST_F(LostReplyTest, RetryAfterTheServersDeathIsTheSameGrant) {
  for (const Mode mode : {Mode::shared(), kTwo}) {
    const RequestId request = new_request();
    ASSERT_TRUE(bad(lose(request, mode), ErrorCode::outcome_unknown));
    etcd.kill();
    etcd.start();
    Result<AcquireReply> again = one.acquire_as(mode, request);
    const BootTime patience = BootClock::now() + 30s;
    while (!again && BootClock::now() < patience) again = one.acquire_as(mode, request);
    ASSERT_TRUE(granted(again));
    const auto holders = other.inspect();
    ASSERT_TRUE(holders) << to_string(holders.error());
    ASSERT_THAT(holders->holders, SizeIs(1));
    EXPECT_EQ(holders->holders[0].token, granted(again)->token);
    EXPECT_EQ(holders->holders[0].slot, granted(again)->slot);
    EXPECT_EQ(one.release(request), ReleaseReply::released);
  }
}

TEST_F(LostReplyTest, WithdrawnAttemptsPutNothingBack) {
  for (const Mode mode : {Mode::shared(), kTwo}) {
    const RequestId request = new_request();
    wire.arm(rig::WireFault::cut_before);
    ASSERT_TRUE(bad(one.acquire_as(mode, request), ErrorCode::outcome_unknown));
    EXPECT_EQ(one.release(request), ReleaseReply::not_held);
    const std::string marks =
        ctl({"get", "--prefix", "--keys-only", key("!withdrawn/" + request.hex() + "/")});
    EXPECT_NE(marks, "") << "it could come late, and would find this";
    RawStore twin(etcd.open());
    EXPECT_TRUE(bad(twin.acquire_as(mode, request), ErrorCode::unavailable));
    EXPECT_THAT(other.inspect()->holders, IsEmpty());
  }
}

// One froze in front of it, and its own reply is lost when it is its turn.
TEST_F(LostReplyTest, PermitComesToWhoWaitsBehindAFrozenOne) {
  const Mode mode = Mode::permit_of(1);
  const RequestId holder = new_request();
  ASSERT_TRUE(granted(other.acquire_as(mode, holder)));
  Worker frozen = Worker::hold(etcd.url(), "job", 3s, 600s, mode);
  EXPECT_EQ(frozen.line(), "asking");
  while (other.inspect()->waiters.empty()) std::this_thread::sleep_for(1ms);
  frozen.freeze();
  const RequestId request = new_request();
  ASSERT_TRUE(waits(one.acquire_as(mode, request, true)));
  other.release(holder);
  ASSERT_TRUE(one.events.wait_for_nudge(request, 30s));
  // A nudge may come early: its turn comes when the frozen one's lease is over.
  while (other.inspect()->waiters.front().request != request) std::this_thread::sleep_for(1ms);
  ASSERT_TRUE(bad(lose(request, mode, true), ErrorCode::outcome_unknown));
  const auto again = granted(one.acquire_as(mode, request, true));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->slot, Slot{0});
  EXPECT_EQ(one.renew(request), RenewReply::renewed);
  frozen.thaw();
  Client observer(etcd.open());
  while (observer.inspect(lock_name("job"))->waiters.empty()) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(observer.inspect(lock_name("job"))->holder()->request, request)
      << "whoever thaws comes last";
  frozen.kill();
}

// ---- formats -------------------------------------------------------------------------------

TEST_F(EtcdModesTest, StoreOfAnotherFormatIsRefusedWithWhatToDo) {
  { const auto begun = etcd.open(); }
  const auto refused = [&] {
    const auto store = open_etcd(etcd.url());
    EXPECT_TRUE(bad(store, ErrorCode::unsupported));
    return store ? "" : store.error().message;
  };
  ctl({"put", key("!format"), "2"});
  EXPECT_THAT(refused(), AllOf(HasSubstr("format '2'"), HasSubstr("knows only format 1"),
                               HasSubstr("use a program that is at least as new")));
  ctl({"del", key("!format")});
  EXPECT_THAT(refused(), AllOf(HasSubstr("'" + key("") + "' are of an earlier build"),
                               HasSubstr("etcdctl del --prefix")));
  ctl({"del", "--prefix", key("")});
  EXPECT_TRUE(good(open_etcd(etcd.url())));
}

// ---- what others see -----------------------------------------------------------------------

TEST_F(EtcdModesTest, ReaderThatIsCalledLateIsNoLieAboutTokens) {
  RawStore raw(etcd.open());
  const RequestId writer = new_request();
  const std::vector<RequestId> readers = {new_request(), new_request()};
  ASSERT_TRUE(granted(raw.acquire_as(Mode::exclusive(), writer)));
  for (const RequestId& it : readers) ASSERT_TRUE(waits(raw.acquire_as(Mode::shared(), it, true)));
  raw.release(writer);
  const auto later = granted(raw.acquire_as(Mode::shared(), readers[1], true));
  ASSERT_TRUE(later);
  EXPECT_EQ(raw.inspect()->counted_to, std::nullopt) << "the other one's is below it";
  const auto earlier = granted(raw.acquire_as(Mode::shared(), readers[0], true));
  ASSERT_TRUE(earlier);
  EXPECT_LT(earlier->token, later->token);
  EXPECT_GE(raw.inspect()->counted_to, later->token.value());
  const auto holders = raw.inspect()->holders;
  ASSERT_THAT(holders, SizeIs(2));
  EXPECT_EQ(holders[0].request, readers[0]);
}

TEST_F(EtcdModesTest, WhoeverSetsNothingIsNotListed) {
  RawStore raw(etcd.open());
  Client observer(etcd.open());
  ASSERT_TRUE(raw.set_permits(4));
  ASSERT_TRUE(raw.set_permits(5));
  ASSERT_THAT(observer.list().value(), SizeIs(1));
  EXPECT_EQ(observer.list()->front().set_permits, 5);
  ASSERT_TRUE(raw.set_permits(std::nullopt));
  EXPECT_THAT(observer.list().value(), IsEmpty());
}

}  // namespace
}  // namespace leasehold::testing
