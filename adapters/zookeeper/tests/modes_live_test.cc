// Modes where the wire, another client or the operator comes between.
#include <gmock/gmock.h>

#include <chrono>
#include <future>
#include <thread>

#include "blocking_session.h"
#include "ended_session.h"
#include "interposed.h"
#include "leasehold/client.h"
#include "proxied_server.h"
#include "testing/results.h"

namespace leasehold::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

rig::IsRequest is(std::int32_t wanted) {
  return [wanted](std::string_view bytes) {
    bool found = false;
    for_each_request(bytes, [&](std::int32_t type) { found |= type == wanted; });
    return found;
  };
}

std::optional<Granted> granted(const Result<AcquireReply>& reply) {
  const bool is_grant = reply && std::holds_alternative<Granted>(*reply);
  return is_grant ? std::optional(std::get<Granted>(*reply)) : std::nullopt;
}

bool waits(const Result<AcquireReply>& reply) {
  return reply && std::holds_alternative<Queued>(*reply);
}

std::future<Result<AcquireReply>> asked(RawStore& store, Mode mode) {
  return std::async(std::launch::async,
                    [&store, mode] { return store.acquire_as(mode, new_request()); });
}

// Who holds, and who waits behind them.
struct Stand {
  std::vector<RequestId> holders;
  std::vector<RequestId> waiters;
};
Stand stand(RawStore& store, Mode mode, std::size_t waiting) {
  Stand made;
  for (std::int64_t i = 0; i < mode.permits(); ++i) {
    made.holders.push_back(new_request());
    EXPECT_TRUE(granted(store.acquire_as(mode, made.holders.back())));
  }
  for (std::size_t i = 0; i < waiting; ++i) {
    made.waiters.push_back(new_request());
    EXPECT_TRUE(waits(store.acquire_as(mode, made.waiters.back(), true)));
  }
  return made;
}

// ---- what it costs --------------------------------------------------------------------------

TEST(ZookeeperModes, SharedCostsNoRoundTripMoreThanExclusiveAndAPermitOne) {
  ProxiedZookeeper server(is_any_request);
  RawStore store(server.open_through_proxies());
  const auto cost = [&](Mode mode) {
    const RequestId request = new_request();
    const std::size_t before = server.proxy().round_trips();
    EXPECT_TRUE(granted(store.acquire_as(mode, request)));
    const std::size_t held = server.proxy().round_trips();
    EXPECT_EQ(store.release(request), ReleaseReply::released);
    EXPECT_EQ(server.proxy().round_trips() - held, 1u) << to_string(mode);
    return held - before;
  };
  cost(Mode::exclusive());  // it makes the folder
  // So that nothing is answered before all that goes out together is on its way.
  server.proxy().delay(100ms);
  EXPECT_EQ(cost(Mode::exclusive()), 1u);
  EXPECT_EQ(cost(Mode::shared()), 1u);
  EXPECT_EQ(cost(Mode::permit_of(3)), 2u);
  EXPECT_EQ(cost(Mode::permit_of(1)), 1u) << "there is but one slot";
}

TEST(ZookeeperModes, OnlyThePermitThatMayComeInIsTold) {
  ProxiedZookeeper server;
  RawStore store(server.open());
  const Mode two = Mode::permit_of(2);
  const auto [holders, waiters] = stand(store, two, 6);
  EXPECT_EQ(store.events.nudges(), 0u) << "who comes later concerns nobody";
  ASSERT_EQ(store.release(holders[0]), ReleaseReply::released);
  ASSERT_TRUE(store.events.wait_for_nudge(waiters[0], 30s));
  ASSERT_TRUE(granted(store.acquire_as(two, waiters[0], true)));
  ASSERT_TRUE(store.events.wait_for_nudge(waiters[1], 30s)) << "whose turn is next now";
  ASSERT_TRUE(waits(store.acquire_as(two, waiters[1], true)));
  EXPECT_EQ(store.events.nudges(), 2u);
  store.events.forget_nudges();
  ASSERT_EQ(store.release(holders[1]), ReleaseReply::released);
  EXPECT_TRUE(store.events.wait_for_nudge(waiters[1], 30s)) << "though it was not before it";
  EXPECT_EQ(store.events.nudges(), 1u);
}

// ---- answers that are lost ------------------------------------------------------------------

TEST(ZookeeperModes, SlotIsTheSameThoughItsAnswerWasLost) {
  for (const rig::WireFault fault : {rig::WireFault::cut_before, rig::WireFault::cut_after}) {
    SCOPED_TRACE(rig::to_string(fault));
    ProxiedZookeeper server(is_any_request);
    RawStore direct(server.open());
    RawStore faulty(server.open_through_proxies());
    const Mode three = Mode::permit_of(3);
    ASSERT_TRUE(granted(direct.acquire_as(three, new_request())));
    server.proxy().arm(fault, is(kMulti));
    const RequestId request = new_request();
    const auto lost = faulty.acquire_as(three, request);
    ASSERT_FALSE(lost);
    EXPECT_EQ(lost.error().code, ErrorCode::outcome_unknown);
    const auto next = granted(direct.acquire_as(three, new_request()));
    ASSERT_TRUE(next) << "one that comes later is not held up";
    EXPECT_EQ(next->slot, Slot{2}) << "and takes nobody's slot";
    const auto found = granted(faulty.acquire_as(three, request));
    ASSERT_TRUE(found);
    EXPECT_EQ(found->slot, Slot{1});
    EXPECT_LT(found->token, next->token);
    EXPECT_THAT(direct.inspect()->holders, SizeIs(3));
  }
}

TEST(ZookeeperModes, NodeIsFoundAgainThoughItsAnswerWasLost) {
  for (const Mode mode : {Mode::shared(), Mode::permit_of(2)}) {
    SCOPED_TRACE(to_string(mode));
    ProxiedZookeeper server(is_any_request);
    RawStore direct(server.open());
    RawStore faulty(server.open_through_proxies());
    // The folder is known from now on: the next acquire begins with its node.
    const RequestId earlier = new_request();
    ASSERT_TRUE(granted(faulty.acquire_as(mode, earlier)));
    ASSERT_EQ(faulty.release(earlier), ReleaseReply::released);
    server.proxy().arm(rig::WireFault::cut_after, is(kCreate2));
    const RequestId request = new_request();
    ASSERT_FALSE(faulty.acquire_as(mode, request));
    EXPECT_TRUE(granted(faulty.acquire_as(mode, request)));
    const auto status = direct.inspect();
    ASSERT_THAT(status->holders, SizeIs(1));
    EXPECT_EQ(status->holders[0].mode, mode);
    EXPECT_THAT(status->waiters, IsEmpty());
    EXPECT_EQ(faulty.release(request), ReleaseReply::released);
  }
}

// Its node is there until the next connection, and the holder goes meanwhile.
TEST(ZookeeperModes, WhoIsTurnedAwayIsNeverGrantedThoughItsRemovalWasLost) {
  ProxiedZookeeper server;
  RawStore direct(server.open());
  RawStore faulty(server.open_through_proxies());
  const RequestId holder = new_request();
  ASSERT_TRUE(granted(direct.acquire(holder)));
  server.proxy().arm(rig::WireFault::cut_before, is(kDelete));
  const RequestId wrong = new_request();
  auto answer = std::async(std::launch::async,
                           [&] { return faulty.acquire_as(Mode::permit_of(2), wrong, true); });
  ASSERT_TRUE(server.proxy().wait_for_fault(30s));
  server.proxy().refuse(true);
  EXPECT_TRUE(bad(answer.get(), ErrorCode::invalid));
  EXPECT_THAT(direct.inspect()->waiters, SizeIs(1));
  ASSERT_EQ(direct.release(holder), ReleaseReply::released);
  const RequestId next = new_request();
  EXPECT_TRUE(granted(direct.acquire_as(Mode::permit_of(2), next)));
  server.proxy().refuse(false);
  wait_until([&] {
    const auto status = direct.inspect();
    return status && status->holders.size() == 1 && status->holder()->request == next;
  });
  EXPECT_EQ(faulty.renew(wrong), RenewReply::gone);
}

// ---- those who do not ask -------------------------------------------------------------------

TEST(ZookeeperModes, PermitsThatSleepAreGivenTheirSlotsByTheOneBehindThem) {
  ProxiedZookeeper server;
  RawStore store(server.open());
  const Mode three = Mode::permit_of(3);
  const auto [holders, waiters] = stand(store, three, 3);
  for (const RequestId& it : holders) ASSERT_EQ(store.release(it), ReleaseReply::released);
  const auto last = granted(store.acquire_as(three, waiters[2], true));
  ASSERT_TRUE(last);
  EXPECT_EQ(last->slot, Slot{2}) << "it does not take what those before it have a right to";
  store.events.forget_nudges();
  const auto first = granted(store.acquire_as(three, waiters[0], true));
  ASSERT_TRUE(first);
  EXPECT_EQ(first->slot, Slot{0});
  EXPECT_LT(first->token, last->token);
  ASSERT_TRUE(store.events.wait_for_nudge(waiters[1], 30s));
  EXPECT_EQ(granted(store.acquire_as(three, waiters[1], true))->slot, Slot{1});
}

TEST(ZookeeperModes, SessionThatEndsTakesItsPermitsAlong) {
  SessionKey key;
  ProxiedZookeeper server(key.listener());
  RawStore store(server.open_through_proxies());
  RawStore other(server.open());
  const Mode one = Mode::permit_of(1);
  const RequestId held = new_request();
  const RequestId early = new_request();
  const RequestId late = new_request();
  const auto first = granted(store.acquire_as(one, held));
  ASSERT_TRUE(first);
  ASSERT_TRUE(waits(store.acquire_as(one, early, true)));
  ASSERT_TRUE(waits(other.acquire_as(one, late, true)));
  end_session_behind(server, key, store);
  wait_until([&] { return store.events.was_ended(held); });
  EXPECT_TRUE(store.events.wait_for_nudge(early, 30s)) << "its place is gone: it has to ask again";
  ASSERT_TRUE(other.events.wait_for_nudge(late, 30s));
  const auto next = granted(other.acquire_as(one, late, true));
  ASSERT_TRUE(next);
  EXPECT_EQ(next->slot, Slot{0});
  EXPECT_GT(next->token, first->token);
  EXPECT_TRUE(waits(store.acquire_as(one, early, true))) << "it was never granted";
  EXPECT_EQ(store.renew(held), RenewReply::gone);
}

// ---- the operator ---------------------------------------------------------------------------

TEST(ZookeeperModes, WhoIsAboutToTakeASlotSeesThatThereAreFewerNow) {
  ProxiedZookeeper server;
  RawStore direct(server.open());
  RawStore slow(server.open_through_proxies());
  ASSERT_TRUE(direct.set_permits(2));
  ASSERT_TRUE(granted(direct.acquire_as(Mode::permit_of(2), new_request())));
  server.proxy().delay(300ms);
  auto answer = asked(slow, Mode::permit_of(2));
  wait_until([&] { return direct.inspect()->waiters.size() == 1; });
  ASSERT_TRUE(direct.set_permits(1));
  const auto reply = answer.get();
  ASSERT_TRUE(good(reply));
  EXPECT_TRUE(std::holds_alternative<Busy>(*reply));
  EXPECT_THAT(direct.inspect()->holders, SizeIs(1));
}

// It has looked, and one has gone and another come before it writes.
TEST(ZookeeperModes, TwoWhoLookAtOnceNeverTakeOneSlot) {
  ProxiedZookeeper server;
  RawStore direct(server.open());
  RawStore slow(server.open_through_proxies());
  const Mode three = Mode::permit_of(3);
  const auto [holders, nobody] = stand(direct, three, 0);
  ASSERT_EQ(direct.release(holders[2]), ReleaseReply::released);
  server.proxy().delay(300ms);
  auto answer = asked(slow, three);
  wait_until([&] { return direct.inspect()->waiters.size() == 1; });
  ASSERT_EQ(direct.release(holders[0]), ReleaseReply::released);
  const auto late = granted(direct.acquire_as(three, new_request()));
  ASSERT_TRUE(late);
  EXPECT_EQ(late->slot, Slot{2});
  const auto early = granted(answer.get());
  ASSERT_TRUE(early);
  EXPECT_EQ(early->slot, Slot{0});
}

TEST(ZookeeperModes, SlotThatWasGivenStaysThoughThereIsButOneNow) {
  ProxiedZookeeper server;
  RawStore store(server.open());
  const Mode three = Mode::permit_of(3);
  const auto [holders, waiters] = stand(store, three, 3);
  for (const RequestId& it : holders) ASSERT_EQ(store.release(it), ReleaseReply::released);
  EXPECT_EQ(granted(store.acquire_as(three, waiters[2], true))->slot, Slot{2});
  ASSERT_EQ(store.release(waiters[0]), ReleaseReply::released);
  ASSERT_TRUE(good(store.set_permits(1)));
  EXPECT_EQ(store.inspect()->holders.at(0).slot, Slot{1});
  EXPECT_EQ(granted(store.acquire_as(three, waiters[1], true))->slot, Slot{1});
}

// It reads the slots, is given one, and when it reads the queue it is first, and there is one
// permit.
TEST(ZookeeperModes, SlotThatIsGivenBetweenTwoReadsIsSeen) {
  ProxiedZookeeper server;
  RawStore store(server.open());
  RawStore other(server.open());
  const Mode four = Mode::permit_of(4);
  ASSERT_TRUE(good(store.set_permits(4)));
  const RequestId holders[] = {new_request(), new_request()};
  for (const RequestId& it : holders) ASSERT_TRUE(granted(store.acquire_as(four, it)));
  std::optional<NextListHangs> hang(std::in_place);
  auto answer = asked(other, Mode::permit_of(1));
  hang->wait_for_it();
  wait_until([&] { return store.inspect()->waiters.size() == 1; });
  EXPECT_EQ(granted(store.acquire_as(four, new_request()))->slot, Slot{3});
  for (const RequestId& it : holders) ASSERT_EQ(store.release(it), ReleaseReply::released);
  ASSERT_TRUE(good(store.set_permits(1)));
  hang.reset();
  const auto slow = granted(answer.get());
  ASSERT_TRUE(slow);
  EXPECT_EQ(slow->slot, Slot{2});
}

TEST(ZookeeperModes, MorePermitsReachWhoWaitsForTheOnlyOne) {
  ProxiedZookeeper server;
  RawStore store(server.open());
  const Mode one = Mode::permit_of(1);
  const auto [holders, waiters] = stand(store, one, 3);
  EXPECT_EQ(store.events.nudges(), 0u);
  ASSERT_TRUE(good(store.set_permits(3)));
  ASSERT_TRUE(store.events.wait_for_nudge(waiters[0], 30s));
  EXPECT_EQ(granted(store.acquire_as(one, waiters[0], true))->slot, Slot{1});
  EXPECT_EQ(granted(store.acquire_as(one, holders[0]))->slot, Slot{0});
  ASSERT_TRUE(store.events.wait_for_nudge(waiters[1], 30s));
  EXPECT_EQ(granted(store.acquire_as(one, waiters[1], true))->slot, Slot{2});
  ASSERT_TRUE(good(store.set_permits(1)));
  ASSERT_EQ(store.release(holders[0]), ReleaseReply::released);
  ASSERT_EQ(store.release(waiters[0]), ReleaseReply::released);
  ASSERT_TRUE(waits(store.acquire_as(one, waiters[2], true)));
  EXPECT_EQ(store.inspect()->holders.at(0).slot, Slot{2}) << "nobody changes its slot";
  ASSERT_EQ(store.release(waiters[1]), ReleaseReply::released);
  ASSERT_TRUE(store.events.wait_for_nudge(waiters[2], 30s));
  EXPECT_EQ(granted(store.acquire_as(one, waiters[2], true))->slot, Slot{0});
}

TEST(ZookeeperModes, MorePermitsReachAllWhoFitThoughOneOfThemIsCutOff) {
  ProxiedZookeeper server;
  Client client(server.open());
  RawStore faulty(server.open_through_proxies());
  const Mode one = Mode::permit_of(1);
  ASSERT_TRUE(client.set_permits(lock_name("job"), 1));
  auto holder = client.acquire("job", {.mode = one});
  ASSERT_TRUE(holder);
  ASSERT_TRUE(waits(faulty.acquire_as(one, new_request(), true)));
  server.proxy().hold(true);
  std::vector<std::future<Result<Lease>>> coming;
  for (std::size_t i = 0; i < 3; ++i) {
    coming.push_back(std::async(std::launch::async,
                                [&] { return client.acquire("job", {.wait = 60s, .mode = one}); }));
    wait_until([&] { return client.inspect(lock_name("job"))->waiters.size() == i + 2; });
  }
  ASSERT_TRUE(client.set_permits(lock_name("job"), 5));
  std::set<Slot> slots = {holder->slot().value()};
  std::vector<Lease> held;
  for (auto& it : coming) {
    auto lease = it.get();
    ASSERT_TRUE(good(lease));
    slots.insert(lease->slot().value());
    held.push_back(std::move(*lease));
  }
  EXPECT_THAT(slots, SizeIs(4));
  server.proxy().hold(false);
}

TEST(ZookeeperModes, OperatorsWhoSetPermitsAtOnceLeaveOneNumber) {
  ProxiedZookeeper server;
  RawStore store(server.open());
  std::vector<std::future<Status>> setting;
  for (std::int64_t number = 1; number <= 8; ++number) {
    setting.push_back(std::async(
        std::launch::async, [&, number] { return RawStore(server.open()).set_permits(number); }));
  }
  for (auto& it : setting) EXPECT_TRUE(good(it.get()));
  EXPECT_NE(store.inspect()->set_permits, std::nullopt);
  ASSERT_TRUE(store.set_permits(std::nullopt));
  EXPECT_EQ(store.inspect()->set_permits, std::nullopt);
}

TEST(ZookeeperModes, NumberWhoseAnswerWasLostIsInDoubtAndCanBeSetAgain) {
  ProxiedZookeeper server;
  RawStore store(server.open_through_proxies());
  ASSERT_TRUE(store.set_permits(3));
  server.proxy().arm(rig::WireFault::cut_after, is(kMulti));
  EXPECT_TRUE(bad(store.set_permits(4), ErrorCode::outcome_unknown));
  EXPECT_TRUE(good(store.set_permits(4)));
  EXPECT_EQ(store.inspect()->set_permits, 4);
}

TEST(ZookeeperModes, ExclusiveLocksOfTheKazooRecipeAreRefusedWhereAnOperatorHasSetPermits) {
  ProxiedZookeeper server;
  RawStore store(server.open());
  ASSERT_TRUE(store.set_permits(2));
  RawStore kazoo(open_zookeeper(server.url() + "?recipe=kazoo"));
  EXPECT_TRUE(bad(kazoo.acquire(new_request()), ErrorCode::invalid));
  EXPECT_TRUE(bad(kazoo.set_permits(3), ErrorCode::unsupported));
  EXPECT_EQ(store.inspect()->set_permits, 2);
  Client client(open_zookeeper(server.url() + "?recipe=kazoo"));
  for (const AcquireOptions& it :
       {AcquireOptions{.mode = Mode::shared()}, AcquireOptions{.mode = Mode::permit_of(2)},
        AcquireOptions{.note = "here"}}) {
    const auto refused = client.acquire("job", it);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::unsupported);
    EXPECT_THAT(refused.error().message, AllOf(HasSubstr("__lock__"), HasSubstr("recipe=curator")));
  }
}

TEST(ZookeeperModes, AnOperatorTakesALockFromAnyHolderButFromNoneWhoWaits) {
  ProxiedZookeeper server;
  RawStore store(server.open());
  for (const Mode mode : {Mode::shared(), Mode::permit_of(2)}) {
    SCOPED_TRACE(to_string(mode));
    const auto holders = {new_request(), new_request()};
    const RequestId waiter = new_request();
    for (const RequestId& it : holders) ASSERT_TRUE(granted(store.acquire_as(mode, it)));
    const Mode waits_as = mode.is_permit() ? mode : Mode::exclusive();
    ASSERT_TRUE(waits(store.acquire_as(waits_as, waiter, true)));
    RawStore other(server.open());
    EXPECT_EQ(other.force_release(waiter).value(), ReleaseReply::not_held);
    EXPECT_EQ(other.force_release(*std::rbegin(holders)).value(), ReleaseReply::released);
    EXPECT_EQ(other.force_release(*holders.begin()).value(), ReleaseReply::released);
    ASSERT_TRUE(store.events.wait_for_nudge(waiter, 30s));
    EXPECT_TRUE(granted(store.acquire_as(waits_as, waiter, true)));
    EXPECT_EQ(store.release(waiter), ReleaseReply::released);
  }
}

// ---- formats --------------------------------------------------------------------------------

class Tool {
 public:
  explicit Tool(ProxiedZookeeper& server)
      : session_(zookeeper::Options::of(Url::parse(server.url() + "/tool").value()).value()) {}
  void write(const std::string& path, const std::string& data) {
    const CallContext soon{BootClock::now() + 10s, {}};
    const auto made = session_.create(path, data, soon);
    ASSERT_TRUE(good(made));
    if (*made != 0) EXPECT_EQ(session_.set(path, data, soon), 0) << path;
  }

 private:
  zookeeper::BlockingSession session_;
};

TEST(ZookeeperModes, StoreOfAnotherFormatIsRefused) {
  ProxiedZookeeper server;
  Tool tool(server);
  const std::string id(32, 'a');
  for (const auto& [text, why] :
       {std::pair{id, "begin afresh"}, std::pair{"leasehold 3 " + id, "in format 3"}}) {
    tool.write(server.folder() + "/.lineage", text);
    const auto refused =
        zookeeper::adapters().front().open_store(Url::parse(server.url()).value(), {});
    ASSERT_FALSE(refused) << text;
    EXPECT_EQ(refused.error().code, ErrorCode::unavailable);
    EXPECT_THAT(refused.error().message, HasSubstr(why));
  }
}

TEST(ZookeeperModes, SlotsOfALaterFormatAreNotMisread) {
  ProxiedZookeeper server;
  Tool tool(server);
  RawStore store(server.open());
  tool.write(server.folder() + "/job", "leasehold 3 0=7");
  const auto refused = store.acquire_as(Mode::permit_of(2), new_request());
  ASSERT_TRUE(bad(refused, ErrorCode::unavailable));
  EXPECT_THAT(refused.error().message, HasSubstr(server.folder() + "/job"));
  EXPECT_THAT(store.inspect()->waiters, IsEmpty());
  tool.write(server.folder() + "/job", "10.0.0.7");
  EXPECT_TRUE(granted(store.acquire_as(Mode::permit_of(2), new_request())))
      << "Curator writes an address there";
}

}  // namespace
}  // namespace leasehold::testing
