// What goes to a real redis-server for calls that go together, and what each of them is answered.
#include <gmock/gmock.h>

#include <deque>
#include <thread>

#include "composer.h"
#include "redis_live.h"

namespace leasehold::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

OwnerLabel owner_of(std::string_view text) {
  return OwnerLabel::parse(text).value();
}

class RedisTogether : public RedisLive {
 protected:
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
    redis::Parts parts;
    server_->run_together(
        limits_of(batch),
        [&]() -> std::span<const redis::ScriptCall> {
          parts = composer.begin(batch);
          return parts.scripts;
        },
        [&](std::size_t i, Result<resp::Value> reply) { parts.answers[i](std::move(reply)); });
    return parts.scripts.size();
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
  // By the method of the store.
  Result<AcquireReply> alone(const AskedAcquire& asked) {
    const auto script = composer.script_of(asked.call).value();
    return redis::read_acquire(server_->run(script, soon()).value(), asked.call);
  }

  RawStore store{under.open()};
  Doubts doubts;

 private:
  std::unique_ptr<redis::Server> server_ = server_at(under.server());
  redis::Subscriber subscriber_{*server_, "nowhere", [](const RequestId&) {}};
  std::deque<AskedAcquire> acquires_;
  std::deque<AskedRelease> releases_;
  std::deque<AskedRenew> renewals_;

 protected:
  redis::Composer composer{"lock:", StoreId::random(system_random()), subscriber_, doubts};
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
  EXPECT_EQ(store.release_another(lock_name("held"), holder).value(), ReleaseReply::released);
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
  EXPECT_EQ(store.release_another(lock_name("held"), holder).value(), ReleaseReply::released);
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

TEST_F(RedisTogether, AScriptThatWasForgottenIsSentInFull) {
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(cli({"SCRIPT", "FLUSH"}), "OK");
    AskedAcquire& first = acquire("a" + std::to_string(i));
    AskedAcquire& second = acquire("b" + std::to_string(i));
    AskedAcquire& reader = acquire("c" + std::to_string(i), new_request(), Mode::shared());
    EXPECT_EQ(go({&first, &second, &reader}), 2u);
    EXPECT_TRUE(grant(first).fresh);
    EXPECT_TRUE(grant(second).fresh);
    EXPECT_TRUE(grant(reader).fresh);
  }
}

}  // namespace
}  // namespace leasehold::testing
