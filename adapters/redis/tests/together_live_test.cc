// What goes to a real redis-server for calls that go together, and what each of them is answered.
#include <gmock/gmock.h>

#include <deque>
#include <thread>

#include "composer.h"
#include "redis_live.h"
#include "together.h"

namespace leasehold::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

OwnerLabel owner_of(std::string_view text) {
  return OwnerLabel::parse(text).value();
}

class RedisTogether : public RedisLive {
 protected:
  RedisTogether() {
    held("before");  // now it is known which store this is
    cli({"DEL", "lock:before"});
  }
  ~RedisTogether() override { server_->close(); }

  static CallContext soon(std::stop_token stop = {}) { return {BootClock::now() + 10s, stop}; }

  AskedAcquire& acquire(std::string_view lock, const RequestId& request = new_request(),
                        Mode mode = {}, std::string_view note = "") {
    return acquires_.emplace_back(
        AcquireCall{lock_name(lock), request, owner_of("me"), Ttl::of(30s).value(), false, mode,
                    Note::parse(note).value()},
        soon());
  }
  AskedRelease& release(std::string_view lock, const RequestId& request, Millis keep_for = {}) {
    return releases_.emplace_back(ReleaseCall{lock_name(lock), request, keep_for}, soon());
  }
  AskedRenew& renew(std::string_view lock, const RequestId& request) {
    return renewals_.emplace_back(
        std::vector<RenewCall>{{lock_name(lock), request, Ttl::of(60s).value()}}, soon());
  }

  // How many scripts it took.
  std::size_t go(std::vector<AnyAsked> batch) {
    auto parts = composer.begin(batch);
    auto sent = redis::Convoy::open(*server_, soon())->send(soon(), parts.scripts, true);
    for (const auto& answer : parts.answers) answer(sent->reply());
    return parts.scripts.size();
  }

  // The server learns the scripts.
  void teach() {
    AskedAcquire& one = acquire("teach");
    AskedAcquire& other = acquire("teach-too");
    go({&one, &other});
    go({&release("teach", one.call.request), &release("teach-too", other.call.request)});
  }

  static const Granted& grant(const AskedAcquire& asked) {
    return std::get<Granted>(asked.reply->value());
  }
  RequestId held(std::string_view lock) {
    AskedAcquire& asked = acquire(lock);
    go({&asked});
    grant(asked);
    return asked.call.request;
  }
  bool leaves(std::string_view lock, const RequestId& request) {
    AskedRelease& asked = release(lock, request);
    go({&asked});
    return asked.reply->value() == ReleaseReply::released;
  }
  // By the method of the store.
  Result<AcquireReply> alone(const AskedAcquire& asked) {
    const auto sent = composer.script_of(asked.call).value();
    return composer.read(run(sent.script), asked.call, sent.store);
  }
  resp::Value run(const redis::ScriptCall& script) { return server_->run(script, soon()).value(); }

  RawStore store{under.open()};
  Doubts doubts;

 private:
  std::unique_ptr<redis::Server> server_ = server_at(under.server());
  redis::Subscriber subscriber_{*server_, "nowhere", [](const RequestId&) {}};
  std::deque<AskedAcquire> acquires_;
  std::deque<AskedRelease> releases_;
  std::deque<AskedRenew> renewals_;

 protected:
  redis::Composer composer{"lock:", subscriber_, doubts};
  redis::Together together{*server_, composer};
};

TEST_F(RedisTogether, FreeLocksAreGrantedByOneScriptAsEachAloneWouldBe) {
  AskedAcquire& first = acquire("a", new_request(), {}, "for the books");
  AskedAcquire& second = acquire("b");
  AskedAcquire& third = acquire("c");
  EXPECT_EQ(go({&first, &second, &third}), 1u);
  EXPECT_LT(grant(first).token, grant(second).token);
  EXPECT_LT(grant(second).token, grant(third).token);
  EXPECT_TRUE(grant(first).fresh);
  EXPECT_EQ(grant(first).store, grant(third).store);

  Client client(under.open());
  const auto status = client.inspect(lock_name("a")).value();
  ASSERT_EQ(status.holders.size(), 1u);
  EXPECT_EQ(status.holders[0].request, first.call.request);
  EXPECT_EQ(status.holders[0].token, grant(first).token);
  EXPECT_EQ(status.holders[0].owner, "me");
  EXPECT_EQ(status.holders[0].note, "for the books");
  EXPECT_GT(status.holders[0].remaining, 20s);
  EXPECT_LT(status.holders[0].held_for, 20s);
  const auto again = std::get<Granted>(alone(first).value());
  EXPECT_EQ(again.token, grant(first).token);
  EXPECT_FALSE(again.fresh);

  AskedRelease& one = release("a", first.call.request);
  AskedRelease& other = release("c", third.call.request);
  EXPECT_EQ(go({&one, &other}), 1u);
  EXPECT_EQ(one.reply->value(), ReleaseReply::released);
  EXPECT_EQ(other.reply->value(), ReleaseReply::released);
  EXPECT_EQ(cli({"EXISTS", "lock:a", "lock:c"}), "0");
  EXPECT_EQ(cli({"EXISTS", "lock:b"}), "1");
}

TEST_F(RedisTogether, WhatIsInTheWayOfOneLockHoldsUpNoOther) {
  const RequestId holder = held("held");
  EXPECT_EQ(cli({"HSET", "lock:data", "of", "others"}), "1");
  EXPECT_EQ(cli({"ZADD", "leasehold:queue:lock:waited", "1", new_request().hex()}), "1");
  EXPECT_EQ(cli({"SET", "leasehold:permits:lock:set", "3"}), "OK");
  const RequestId given_up = new_request();
  EXPECT_EQ(cli({"SET", redis::released_key(given_up), "999"}), "OK");

  std::vector<AskedAcquire*> blocked;
  for (const char* lock : {"held", "data", "waited", "set"}) blocked.push_back(&acquire(lock));
  blocked.push_back(&acquire("late", given_up));
  AskedAcquire& before = acquire("before");
  AskedAcquire& after = acquire("after");
  std::vector<AnyAsked> batch{&before};
  batch.insert(batch.end(), blocked.begin(), blocked.end());
  batch.push_back(&after);
  EXPECT_EQ(go(batch), 1u);
  EXPECT_EQ(grant(before).token.value() + 1, grant(after).token.value());
  for (const AskedAcquire* it : blocked) {
    EXPECT_FALSE(it->reply) << it->call.lock.str() << " was not done, and goes on its own";
  }
  EXPECT_TRUE(leaves("held", holder));
  EXPECT_EQ(cli({"EXISTS", "lock:waited", "lock:set", "lock:late"}), "0");
}

TEST_F(RedisTogether, OfTwoThatWantOneLockTheFirstGetsIt) {
  AskedAcquire& first = acquire("one");
  AskedAcquire& second = acquire("one");
  AskedAcquire& other = acquire("other");
  AskedAcquire& another = acquire("another");
  EXPECT_EQ(go({&first, &other, &second, &another}), 3u);
  EXPECT_TRUE(grant(first).fresh);
  EXPECT_TRUE(std::holds_alternative<Busy>(second.reply->value()));
  EXPECT_TRUE(grant(other).fresh);
  EXPECT_TRUE(grant(another).fresh);
}

TEST_F(RedisTogether, ALockThatIsReleasedIsFreeForWhoCameLater) {
  const RequestId holder = held("job");
  const RequestId other = held("other");
  AskedRelease& leaves = release("job", holder);
  AskedRelease& leaves_too = release("other", other);
  AskedAcquire& comes = acquire("job");
  AskedAcquire& elsewhere = acquire("elsewhere");
  go({&leaves, &leaves_too, &comes, &elsewhere});
  EXPECT_EQ(leaves.reply->value(), ReleaseReply::released);
  EXPECT_EQ(leaves_too.reply->value(), ReleaseReply::released);
  EXPECT_TRUE(grant(comes).fresh);
  EXPECT_TRUE(grant(elsewhere).fresh);
}

TEST_F(RedisTogether, OnlyItsHolderReleasesALockAndOnlyWhereNobodyWaits) {
  const RequestId holder = held("held");
  const RequestId first = held("waited");
  const RequestId kept = held("kept");
  ASSERT_TRUE(std::holds_alternative<Queued>(
      store.acquire_another(lock_name("waited"), new_request(), 30s, /*queue=*/true).value()));
  AskedRelease& stranger = release("held", new_request());
  AskedRelease& wakes = release("waited", first);
  AskedRelease& free = release("free", new_request());
  AskedRelease& keeps = release("kept", kept, 10s);
  EXPECT_EQ(go({&stranger, &wakes, &free, &keeps}), 2u);
  EXPECT_FALSE(stranger.reply);
  EXPECT_FALSE(wakes.reply) << "who releases it tells the next, on its own";
  EXPECT_FALSE(free.reply);
  EXPECT_EQ(keeps.reply->value(), ReleaseReply::released);
  EXPECT_EQ(cli({"EXISTS", "lock:held", "lock:waited", "lock:kept"}), "3");
  EXPECT_TRUE(leaves("held", holder));
}

TEST_F(RedisTogether, AReleaseThatComesLateLeavesALaterGrant) {
  AskedRelease& late = release("job", new_request());
  AskedRelease& other = release("other", held("other"));
  const auto parts = composer.begin(std::vector<AnyAsked>{&late, &other});
  AskedAcquire& again = acquire("job", late.call.request);
  EXPECT_TRUE(std::get<Granted>(alone(again).value()).fresh);
  EXPECT_EQ(run(parts.scripts.at(0)).at(0).integer, 0);
  EXPECT_EQ(cli({"EXISTS", "lock:job"}), "1");
}

// Its acquire may still be on its way, and must find that it was released.
TEST_F(RedisTogether, ADoubtfulReleaseLeavesItsMark) {
  const RequestId doubtful = held("doubtful");
  const RequestId other = held("other");
  const RequestId another = held("another");
  doubts.doubt(doubtful);
  AskedRelease& first = release("doubtful", doubtful);
  AskedRelease& second = release("other", other);
  AskedRelease& third = release("another", another);
  EXPECT_EQ(go({&first, &second, &third}), 2u);
  EXPECT_EQ(first.reply->value(), ReleaseReply::released);
  EXPECT_EQ(cli({"EXISTS", redis::released_key(doubtful)}), "1");
  EXPECT_EQ(cli({"EXISTS", redis::released_key(other)}), "0");
}

// A caller may give a call up as soon as it has begun, and release it.
TEST_F(RedisTogether, WhatWasGivenUpBeforeItWasSentIsNotGranted) {
  for (const bool alone : {true, false}) {
    SCOPED_TRACE(alone);
    AskedAcquire& given_up = acquire("given-up");
    AskedAcquire& other = acquire("other");
    const auto parts = composer.begin(alone ? std::vector<AnyAsked>{&given_up}
                                            : std::vector<AnyAsked>{&given_up, &other});
    doubts.doubt(given_up.call.request);
    const ReleaseCall release{given_up.call.lock, given_up.call.request};
    EXPECT_EQ(run(composer.script_of(release).value()).integer, 0);
    for (const redis::ScriptCall& late : parts.scripts) run(late);
    EXPECT_EQ(cli({"EXISTS", "lock:given-up"}), "0");
    EXPECT_EQ(cli({"EXISTS", "lock:other"}), alone ? "0" : "1");
  }
}

// The same, at the first moment when it can be given up: so also who does not begin has drawn one.
TEST_F(RedisTogether, ACallDrawsItsNumberBeforeItBegins) {
  const auto next_number = [this] {
    const ReleaseCall any{lock_name("any"), new_request()};
    return std::stol(composer.script_of(any).value().arguments.at(1));
  };
  AskedAcquire& acquire_gone = acquire("gone");
  AskedRelease& release_gone = release("gone", new_request());
  acquire_gone.left_behind();
  release_gone.left_behind();
  const std::int64_t before = next_number();
  EXPECT_TRUE(composer.begin(std::vector<AnyAsked>{&acquire_gone}).scripts.empty());
  EXPECT_EQ(next_number(), before + 3) << "one is the batch's";
  EXPECT_TRUE(composer.begin(std::vector<AnyAsked>{&release_gone}).scripts.empty());
  EXPECT_EQ(next_number(), before + 6);
  const auto parts = composer.begin(std::vector<AnyAsked>{&acquire("one"), &acquire("other")});
  EXPECT_EQ(std::stol(parts.scripts.at(0).arguments.at(0)), before + 7)
      << "the batch's, which is drawn before anybody has begun";
}

TEST_F(RedisTogether, OtherModesAndRenewalsHaveTheirOwnScripts) {
  const RequestId holder = held("held");
  const RequestId over = new_request();
  AskedRenew& alive = renew("held", holder);
  AskedRenew& gone = renew("held", over);
  AskedAcquire& reader = acquire("books", new_request(), Mode::shared());
  AskedAcquire& permit = acquire("desks", new_request(), Mode::permit_of(2));
  AskedAcquire& alone = acquire("alone");
  EXPECT_EQ(go({&alive, &gone, &reader, &permit, &alone}), 5u);
  EXPECT_THAT(alive.reply->value(), ElementsAre(RenewReply::renewed));
  EXPECT_THAT(gone.reply->value(), ElementsAre(RenewReply::gone));
  EXPECT_TRUE(grant(reader).fresh);
  EXPECT_EQ(grant(permit).slot, Slot{0});
  EXPECT_TRUE(grant(alone).fresh);
}

TEST_F(RedisTogether, WhoHasGoneIsNotDoneAndNoNeighbourIsHarmed) {
  AskedAcquire& gone = acquire("gone");
  AskedAcquire& first = acquire("first");
  AskedAcquire& second = acquire("second");
  gone.left_behind();
  EXPECT_EQ(go({&gone, &first, &second}), 1u);
  EXPECT_TRUE(grant(first).fresh);
  EXPECT_TRUE(grant(second).fresh);
  EXPECT_EQ(cli({"EXISTS", "lock:gone"}), "0");
}

// On its own each is told why.
TEST_F(RedisTogether, NothingIsGrantedWhereTheStoreCannotBeUsed) {
  const auto nobody_is_granted = [this] {
    AskedAcquire& first = acquire("first");
    AskedAcquire& second = acquire("second");
    EXPECT_EQ(go({&first, &second}), 1u);
    EXPECT_FALSE(first.reply);
    EXPECT_FALSE(second.reply);
    EXPECT_EQ(cli({"EXISTS", "lock:first", "lock:second"}), "0");
  };
  const std::string its_id = cli({"GET", std::string(redis::kStoreKey)});
  cli({"SET", std::string(redis::kStoreKey), "99 " + std::string(32, 'a')});
  nobody_is_granted();
  cli({"DEL", std::string(redis::kStoreKey)});
  nobody_is_granted();
  cli({"SET", std::string(redis::kStoreKey), its_id});
  cli({"SET", std::string(redis::kTokenKey), "-5"});
  nobody_is_granted();
  cli({"SET", std::string(redis::kTokenKey), "many"});
  nobody_is_granted();
  // A number of Lua is exact below 2^53 only.
  cli({"SET", std::string(redis::kTokenKey), "9007199254740991"});
  nobody_is_granted();
  cli({"SET", std::string(redis::kTokenKey), "7"});
  cli({"CONFIG", "SET", "maxmemory", "1"});
  nobody_is_granted();
  cli({"CONFIG", "SET", "maxmemory", "0"});
}

// Something between client and server has eaten a part of it.
TEST_F(RedisTogether, AnAnswerThatIsTooShortIsAnUnknownOutcome) {
  AskedAcquire& first = acquire("first");
  AskedAcquire& second = acquire("second");
  const std::vector<AnyAsked> batch{&first, &second};
  const auto parts = composer.begin(batch);
  ASSERT_EQ(parts.answers.size(), 1u);
  resp::Value reply;
  reply.type = resp::Type::array;
  parts.answers[0](reply);
  for (const AskedAcquire* it : {&first, &second}) {
    ASSERT_TRUE(it->reply);
    EXPECT_EQ(it->reply->error().code, ErrorCode::outcome_unknown);
  }
}

TEST_F(RedisTogether, TheNextBatchBringsAScriptAlongThatWasForgotten) {
  const auto take_three = [&](bool known) {
    static int count = 0;
    const std::string number = std::to_string(++count);
    AskedAcquire& first = acquire("a" + number);
    AskedAcquire& second = acquire("b" + number);
    AskedAcquire& reader = acquire("c" + number, new_request(), Mode::shared());
    together.depart(std::vector<AnyAsked>{&first, &second, &reader})->arrive();
    for (AskedAcquire* it : {&first, &second, &reader}) {
      ASSERT_EQ(it->reply.has_value(), known) << "nothing is done, or it is told";
      if (known) EXPECT_TRUE(grant(*it).fresh);
    }
  };
  EXPECT_EQ(cli({"SCRIPT", "FLUSH"}), "OK");
  take_three(false);
  take_three(true);
  take_three(true);
  EXPECT_THAT(cli({"INFO", "commandstats"}), ::testing::HasSubstr("cmdstat_evalsha"));
}

TEST_F(RedisTogether, ABatchThatIsSentBehindAnotherIsDoneAfterIt) {
  AskedRelease& leaves = release("job", held("job"));
  AskedRelease& leaves_too = release("other", held("other"));
  AskedAcquire& comes = acquire("job");
  AskedAcquire& elsewhere = acquire("elsewhere");
  teach();
  auto first = together.depart(std::vector<AnyAsked>{&leaves, &leaves_too});
  auto second = together.depart(std::vector<AnyAsked>{&comes, &elsewhere});
  first->arrive();
  second->arrive();
  EXPECT_EQ(leaves.reply->value(), ReleaseReply::released);
  EXPECT_EQ(leaves_too.reply->value(), ReleaseReply::released);
  EXPECT_TRUE(grant(comes).fresh);
  EXPECT_TRUE(grant(elsewhere).fresh);
}

TEST_F(RedisTogether, WhoIsBehindABatchThatNobodyWaitsForAnyMoreIsAnswered) {
  rig::TcpProxy proxy(under.server().port());
  const auto slow_server = server_at(proxy.port());
  redis::Together slow(*slow_server, composer);
  ASSERT_TRUE(slow_server->borrow(soon())) << "it is connected";
  teach();
  AskedAcquire hasty(acquire("hasty").call, {BootClock::now() + 20ms, {}});
  AskedAcquire& patient = acquire("patient");
  proxy.hold(true);
  auto first = slow.depart(std::vector<AnyAsked>{&hasty});
  auto second = slow.depart(std::vector<AnyAsked>{&patient});
  ASSERT_TRUE(first && second);
  std::thread later([&] {
    while (!hasty.is_over()) std::this_thread::yield();
    proxy.hold(false);
  });
  first->arrive();
  second->arrive();
  later.join();
  EXPECT_TRUE(grant(patient).fresh);
  first.reset();
  second.reset();
  slow_server->close();
}

TEST_F(RedisTogether, AConnectionThatBreaksUnderTwoBatchesLeavesBothInDoubt) {
  rig::TcpProxy proxy(under.server().port());
  const auto broken_server = server_at(proxy.port());
  redis::Together broken(*broken_server, composer);
  ASSERT_TRUE(broken_server->borrow(soon())) << "it is connected";
  teach();
  AskedAcquire& one = acquire("one");
  AskedAcquire& other = acquire("other");
  AskedAcquire& after = acquire("after");
  proxy.hold(true);
  auto first = broken.depart(std::vector<AnyAsked>{&one});
  auto second = broken.depart(std::vector<AnyAsked>{&other});
  ASSERT_TRUE(first && second);
  proxy.cut();
  first->arrive();
  proxy.hold(false);
  auto third = broken.depart(std::vector<AnyAsked>{&after});
  second->arrive();
  EXPECT_EQ(one.reply->error().code, ErrorCode::outcome_unknown);
  EXPECT_EQ(other.reply->error().code, ErrorCode::outcome_unknown);
  ASSERT_TRUE(third) << "on a new connection";
  third->arrive();
  EXPECT_TRUE(grant(after).fresh);
  for (auto* it : {&first, &second, &third}) it->reset();
  broken_server->close();
}

TEST_F(RedisTogether, BatchesThatFollowEachOtherGiveTheirConnectionToWhoWaitsForOne) {
  const auto narrow_server = server_at(under.server().port(), /*connections=*/1);
  redis::Together narrow(*narrow_server, composer);
  teach();
  auto trip = narrow.depart(std::vector<AnyAsked>{&acquire("job")});
  EXPECT_TRUE(trip->can_be_followed());
  std::thread waits([&] { EXPECT_TRUE(narrow_server->borrow(soon())); });
  while (trip->can_be_followed()) std::this_thread::yield();
  trip->arrive();
  trip.reset();
  waits.join();
  narrow_server->close();
}

TEST_F(RedisTogether, WhatABatchDidNotReadIsNotTakenForAnothersReplies) {
  teach();
  AskedAcquire& first = acquire("first");
  AskedAcquire& second = acquire("second");
  auto unread = together.depart(std::vector<AnyAsked>{&first});
  auto behind = together.depart(std::vector<AnyAsked>{&second});
  unread.reset();  // as when something is thrown
  behind->arrive();
  EXPECT_EQ(second.reply->error().code, ErrorCode::outcome_unknown);
  EXPECT_FALSE(behind->can_be_followed());
}

}  // namespace
}  // namespace leasehold::testing
