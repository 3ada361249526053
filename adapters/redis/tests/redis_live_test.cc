// The Redis store and a real redis-server: other programs beside it, scripts that are forgotten,
// wake-ups, failover.
#include <gmock/gmock.h>

#include <algorithm>
#include <future>
#include <thread>

#include "calls.h"
#include "leasehold/resp/command.h"
#include "redis_live.h"

namespace leasehold::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

// What the Redis documentation gives for releasing.
const std::string kCompareAndDelete =
    "if redis.call(\"get\",KEYS[1]) == ARGV[1] then return redis.call(\"del\",KEYS[1]) else return "
    "0 end";

// ---- the documented recipe, typed into redis-cli -------------------------------------------

TEST_F(RedisLive, TheRecipeExcludesUs) {
  RawStore store(under.open());
  EXPECT_EQ(cli({"SET", "lock:job", "my_random_value", "NX", "PX", "30000"}), "OK");
  const auto busy = store.acquire(new_request()).value();
  ASSERT_TRUE(std::holds_alternative<Busy>(busy));
  EXPECT_EQ(std::get<Busy>(busy).ahead, "another program");
  EXPECT_EQ(store.inspect()->known_as, "lock:job");
  EXPECT_EQ(cli({"EVAL", kCompareAndDelete, "1", "lock:job", "my_random_value"}), "1");
  EXPECT_TRUE(std::holds_alternative<Granted>(store.acquire(new_request()).value()));
}

TEST_F(RedisLive, WeExcludeTheRecipe) {
  RawStore store(under.open());
  const RequestId request = new_request();
  ASSERT_TRUE(store.acquire(request));
  EXPECT_EQ(cli({"SET", "lock:job", "my_random_value", "NX", "PX", "30000"}), "");
  EXPECT_EQ(cli({"EVAL", kCompareAndDelete, "1", "lock:job", "my_random_value"}), "0");
  EXPECT_EQ(store.release(request), ReleaseReply::released);
  EXPECT_EQ(cli({"SET", "lock:job", "my_random_value", "NX", "PX", "30000"}), "OK");
  EXPECT_EQ(store.release(request), ReleaseReply::not_held);
  EXPECT_EQ(cli({"GET", "lock:job"}), "my_random_value") << "another program's lock is not touched";
}

TEST_F(RedisLive, TheirExpiryAndTheirDeleteAreNoticed) {
  Client client(under.open());
  EXPECT_EQ(cli({"SET", "lock:job", "value", "NX", "PX", "300"}), "OK");
  ASSERT_TRUE(client.acquire("job", {.wait = 30s})) << "expired";
  EXPECT_EQ(cli({"SET", "lock:forever", "value", "NX"}), "OK");  // careless: no expiry
  auto waiting =
      std::async(std::launch::async, [&] { return client.acquire("forever", {.wait = 30s}); });
  while (client.inspect(lock_name("forever"))->waiters.empty()) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(cli({"DEL", "lock:forever"}), "1");
  EXPECT_TRUE(waiting.get()) << "deleted";
}

TEST_F(RedisLive, WhatTheyHaveAtTheQueuesKeyHoldsUpNoRelease) {
  RawStore store(under.open());
  const RequestId first = new_request();
  ASSERT_TRUE(store.acquire(first));
  EXPECT_EQ(cli({"SET", "leasehold:queue:lock:job", "theirs"}), "OK");
  EXPECT_EQ(store.release(first), ReleaseReply::released);
  EXPECT_EQ(store.release(first), ReleaseReply::not_held) << "a release that was sent again";
  EXPECT_EQ(cli({"DEL", "leasehold:queue:lock:job"}), "1");

  const RequestId second = new_request();
  ASSERT_TRUE(store.acquire(second));
  EXPECT_EQ(cli({"SET", "leasehold:queue:lock:job", "theirs"}), "OK");
  EXPECT_EQ(store.force_release(second).value(), ReleaseReply::released);
  EXPECT_EQ(cli({"EXISTS", "lock:job"}), "0");
}

TEST_F(RedisLive, WhatTheyHaveAtAQueuesKeysHidesNoLock) {
  for (const std::string key : {"leasehold:queue:lock:job", "leasehold:waiters:lock:job"}) {
    SCOPED_TRACE(key);
    cli({"FLUSHALL"});
    Client client(under.open());
    const auto job = client.acquire("job");
    const auto other = client.acquire("other");
    EXPECT_EQ(cli({"SET", key, "theirs"}), "OK");
    const auto locks = client.list();
    ASSERT_TRUE(locks) << to_string(locks.error());
    EXPECT_EQ(locks->size(), 2u);
    const auto shown = client.inspect(lock_name("job"));
    ASSERT_TRUE(shown) << to_string(shown.error());
    EXPECT_TRUE(shown->holder());
    EXPECT_TRUE(shown->waiters.empty());
  }
}

TEST_F(RedisLive, NobodyQueuesWhereTheyHaveSomething) {
  for (const std::string key : {"leasehold:queue:lock:job", "leasehold:waiters:lock:job"}) {
    SCOPED_TRACE(key);
    cli({"FLUSHALL"});
    RawStore store(under.open());
    const RequestId holder = new_request();
    ASSERT_TRUE(store.acquire(holder));
    EXPECT_EQ(cli({"SET", key, "theirs"}), "OK");
    const std::string before = sorted_keys();
    const auto refused = store.acquire(new_request(), 30s, true);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::unavailable);
    EXPECT_THAT(refused.error().message, HasSubstr("another program has a value of its own"));
    EXPECT_THAT(refused.error().store_words, HasSubstr(key));
    EXPECT_EQ(sorted_keys(), before) << "nothing is left behind";
    EXPECT_EQ(cli({"GET", key}), "theirs");
    EXPECT_TRUE(std::holds_alternative<Busy>(store.acquire(new_request()).value()));
    EXPECT_EQ(store.release(holder), ReleaseReply::released);
    EXPECT_TRUE(std::holds_alternative<Granted>(store.acquire(new_request(), 30s, true).value()))
        << "a free lock needs no queue";
  }
}

TEST_F(RedisLive, WhatTheyHaveAtTheWaitersKeyDoesNotHalveAGrant) {
  RawStore store(under.open());
  const RequestId holder = new_request();
  const RequestId waiter = new_request();
  ASSERT_TRUE(store.acquire(holder));
  ASSERT_TRUE(std::holds_alternative<Queued>(store.acquire(waiter, 30s, true).value()));
  EXPECT_EQ(cli({"SET", "leasehold:waiters:lock:job", "theirs"}), "OK");
  EXPECT_EQ(store.release(holder), ReleaseReply::released);
  EXPECT_TRUE(std::holds_alternative<Granted>(store.acquire(waiter, 30s, true).value()));
  EXPECT_EQ(cli({"EXISTS", "leasehold:queue:lock:job"}), "0") << "it has left the queue";
}

TEST_F(RedisLive, WaitersThatCannotBeReadHoldUpNobody) {
  RawStore store(under.open());
  const RequestId holder = new_request();
  ASSERT_TRUE(store.acquire(holder));
  ASSERT_TRUE(std::holds_alternative<Queued>(store.acquire(new_request(), 30s, true).value()));
  EXPECT_EQ(cli({"SET", "leasehold:waiters:lock:job", "theirs"}), "OK");
  EXPECT_EQ(store.release(holder), ReleaseReply::released);
  const auto reply = store.acquire(new_request());
  ASSERT_TRUE(reply) << to_string(reply.error());
  EXPECT_TRUE(std::holds_alternative<Granted>(*reply));
}

TEST_F(RedisLive, QueueWithoutReadableWaitersIsShownWithoutWaiters) {
  RawStore store(under.open());
  ASSERT_TRUE(store.acquire(new_request()));
  ASSERT_TRUE(std::holds_alternative<Queued>(store.acquire(new_request(), 30s, true).value()));
  EXPECT_EQ(store.inspect()->waiters.size(), 1u);
  EXPECT_EQ(cli({"SET", "leasehold:waiters:lock:job", "theirs"}), "OK");
  const auto shown = store.inspect();
  ASSERT_TRUE(shown) << to_string(shown.error());
  EXPECT_TRUE(shown->holder());
  EXPECT_TRUE(shown->waiters.empty());
}

TEST_F(RedisLive, TheirLockCanBeReleasedByForce) {
  RawStore store(under.open());
  EXPECT_EQ(cli({"SET", "lock:job", "value", "NX", "PX", "30000"}), "OK");
  const auto seen = store.inspect()->holder();
  ASSERT_TRUE(seen);
  EXPECT_EQ(store.force_release(new_request()).value(), ReleaseReply::not_held);
  EXPECT_EQ(store.force_release(seen->request).value(), ReleaseReply::released);
  EXPECT_EQ(cli({"EXISTS", "lock:job"}), "0");
}

TEST_F(RedisLive, TheirTimeIsTold) {
  using End = LockStatus::Holder::End;
  Client client(under.open());
  EXPECT_EQ(cli({"SET", "lock:timed", "value", "NX", "PX", "30000"}), "OK");
  EXPECT_EQ(cli({"HSET", "lock:endless", "field", "value"}), "1");
  const auto locks = client.list().value();
  ASSERT_EQ(locks.size(), 2u) << "also those that no Leasehold client ever had";
  EXPECT_EQ(locks[0].lock.str(), "endless");
  EXPECT_EQ(locks[0].holder()->foreign_end, End::never);
  EXPECT_EQ(locks[1].lock.str(), "timed");
  EXPECT_EQ(locks[1].holder()->foreign_end, End::timed);
  EXPECT_LE(locks[1].holder()->remaining, 30s);
  EXPECT_GT(locks[1].holder()->remaining, 1s);
  EXPECT_TRUE(Client(open_url(under.url() + "?prefix=")).list()->empty()) << "all else is data";
}

TEST_F(RedisLive, DataOfAnotherKindIsNeverOverwritten) {
  RawStore store(under.open());
  cli({"HSET", "lock:job", "field", "value"});
  ASSERT_TRUE(std::holds_alternative<Busy>(store.acquire(new_request()).value()));
  EXPECT_EQ(store.release(new_request()), ReleaseReply::not_held);
  EXPECT_EQ(store.renew(new_request()), RenewReply::gone);
  EXPECT_EQ(cli({"HGET", "lock:job", "field"}), "value");
  EXPECT_EQ(cli({"EXISTS", "leasehold:token"}), "0") << "who gets nothing draws no token";
}

TEST_F(RedisLive, KeyOfAnyKindIsHeldForEveryCall) {
  const std::vector<std::vector<std::string>> kinds = {{"SET", "lock:job", ""},
                                                       {"HSET", "lock:job", "field", "value"},
                                                       {"RPUSH", "lock:job", "value"}};
  RawStore store(under.open());
  for (const auto& kind : kinds) {
    SCOPED_TRACE(kind.front());
    cli(kind);
    const auto busy = store.acquire(new_request()).value();
    ASSERT_TRUE(std::holds_alternative<Busy>(busy));
    EXPECT_EQ(std::get<Busy>(busy).ahead, "another program");
    const auto seen = store.inspect()->holder();
    ASSERT_TRUE(seen);
    EXPECT_TRUE(seen->foreign);
    EXPECT_EQ(store.force_release(new_request()).value(), ReleaseReply::not_held);
    EXPECT_EQ(store.force_release(seen->request).value(), ReleaseReply::released);
    EXPECT_FALSE(store.inspect()->holder());
  }
}

// Of a lock whose holder has changed, the successor must not be released.
TEST_F(RedisLive, TheirSuccessorIsNotReleasedByForce) {
  using Words = std::vector<std::string>;
  const std::string much(100'000, 'x');
  const std::vector<std::pair<Words, Words>> successions = {
      {{"SET", "lock:job", "one"}, {"SET", "lock:job", "two"}},
      {{"HSET", "lock:job", "one", "1"}, {"HSET", "lock:job", "two", "1"}},
      {{"RPUSH", "lock:job", "one"}, {"RPUSH", "lock:job", "two"}},
      {{"ZADD", "lock:job", "1", "one"}, {"ZADD", "lock:job", "1", "two"}},
      {{"SADD", "lock:job", "one"}, {"RPUSH", "lock:job", "one"}},
      {{"SET", "lock:job", "one" + much}, {"SET", "lock:job", "two" + much}},
      {{"SET", "lock:job", much + "one"}, {"SET", "lock:job", much + "two"}},
      {{"RPUSH", "lock:job", much}, {"RPUSH", "lock:job", much, much}}};
  RawStore store(under.open());
  for (const auto& [first, second] : successions) {
    SCOPED_TRACE(first.front() + " " + second.back().substr(0, 3));
    cli(first);
    const auto seen = store.inspect()->holder();
    ASSERT_TRUE(seen && seen->foreign);
    cli({"DEL", "lock:job"});
    cli(second);
    EXPECT_EQ(store.force_release(seen->request).value(), ReleaseReply::not_held);
    const auto successor = store.inspect()->holder();
    ASSERT_TRUE(successor);
    EXPECT_EQ(store.force_release(successor->request).value(), ReleaseReply::released);
  }
}

TEST_F(RedisLive, LargeThingsOfTheirsAreNotReadWhole) {
  const auto fill = [&](const std::string& command) {
    cli({"EVAL", command, "1", "lock:job", std::string(1000, 'x')});
  };
  const std::vector<std::string> large = {
      "for i = 1, 2000 do redis.call('HSET', KEYS[1], i, '') end",         // many
      "for i = 1, 100 do redis.call('HSET', KEYS[1], i, ARGV[1]) end",     // long
      "for i = 1, 100 do redis.call('RPUSH', KEYS[1], ARGV[1] .. i) end",  // both
      "redis.call('SET', KEYS[1], string.rep(ARGV[1], 1000))"};
  RawStore store(under.open());
  for (const std::string& command : large) {
    SCOPED_TRACE(command);
    fill(command);
    cli({"CONFIG", "RESETSTAT"});
    const auto seen = store.inspect()->holder();
    ASSERT_TRUE(seen && seen->foreign);
    ASSERT_TRUE(std::holds_alternative<Busy>(store.acquire(new_request()).value()));
    EXPECT_EQ(store.force_release(new_request()).value(), ReleaseReply::not_held);
    EXPECT_EQ(store.force_release(seen->request).value(), ReleaseReply::released);
    EXPECT_THAT(cli({"INFO", "commandstats"}), Not(HasSubstr("cmdstat_dump")));
    const std::string sent = cli({"INFO", "stats"});
    const std::string field = "total_net_output_bytes:";
    EXPECT_LT(std::stol(sent.substr(sent.find(field) + field.size())), 50'000);
  }
}

TEST_F(RedisLive, ListTellsLocksFromDataWithoutAPrefix) {
  Client client(open_url(under.url() + "?prefix="));
  cli({"EVAL", "for i = 1, 3000 do redis.call('SET', 'data:' .. i, i) end", "0"});
  cli({"SET", "like-ours", std::string(32, 'a') + " of another program"});
  cli({"HSET", "hash", "field", "value"});
  cli({"RPUSH", "leasehold:queue:theirs", "value"});
  const auto held = client.acquire("held");
  ASSERT_TRUE(held);
  cli({"SET", "waited-for", "theirs"});
  RawStore waiter(open_url(under.url() + "?prefix="), "waited-for");
  ASSERT_TRUE(waiter.acquire(new_request(), 30s, true));
  const auto kept = client.acquire("kept");
  ASSERT_TRUE(kept);
  const auto locks = client.list().value();
  ASSERT_EQ(locks.size(), 3u);
  EXPECT_EQ(locks[0].lock.str(), "held");
  EXPECT_EQ(locks[1].lock.str(), "kept");
  EXPECT_EQ(locks[2].lock.str(), "waited-for");
  EXPECT_EQ(locks[2].waiters.size(), 1u);
}

// Programs of the recipe try again every tenth of a second or so, and tell nobody of a release.
TEST_F(RedisLive, OnlyTheFirstLooksAsOftenAsProgramsThatDoNotQueue) {
  RawStore store(under.open());
  const RequestId first = new_request();
  const RequestId second = new_request();
  const auto recheck_of = [&](const RequestId& request) {
    return std::get<Queued>(store.acquire(request, 30s, true).value()).recheck_after;
  };
  EXPECT_EQ(cli({"SET", "lock:job", "my_random_value", "NX", "PX", "30000"}), "OK");
  EXPECT_LE(recheck_of(first), 100ms);
  EXPECT_GE(recheck_of(second), 1s);
  EXPECT_EQ(cli({"DEL", "lock:job"}), "1");
  ASSERT_TRUE(std::holds_alternative<Granted>(store.acquire(first, 30s, true).value()));
  EXPECT_GE(recheck_of(second), 1s) << "the holder will tell it";
}

TEST_F(RedisLive, PrefixIsTheUsersAndOwnKeysAreRefused) {
  RawStore store(open_url(under.url() + "?prefix="), "my-resource");
  EXPECT_EQ(cli({"SET", "my-resource", "value", "NX", "PX", "30000"}), "OK");
  EXPECT_TRUE(std::holds_alternative<Busy>(store.acquire(new_request()).value()));
  RawStore own(open_url(under.url() + "?prefix="), "leasehold:store");
  EXPECT_EQ(own.acquire(new_request()).error().code, ErrorCode::invalid);
  EXPECT_EQ(own.try_release(new_request()).error().code, ErrorCode::invalid);
}

TEST_F(RedisLive, FreeLockLeavesNothingBehind) {
  {
    Client client(under.open());
    auto lease = client.acquire("job");
    auto waiting =
        std::async(std::launch::async, [&] { return client.acquire("job", {.wait = 30s}); });
    while (client.inspect(lock_name("job"))->waiters.empty()) std::this_thread::sleep_for(1ms);
    ASSERT_TRUE(lease->release());
    ASSERT_TRUE(waiting.get()->release());
    ASSERT_TRUE(client.acquire("another")->release());
    EXPECT_FALSE(client.inspect(lock_name("job"))->last_token);
    EXPECT_TRUE(client.list()->empty());
  }
  EXPECT_EQ(sorted_keys(), "leasehold:store\nleasehold:token\n");
  EXPECT_EQ(cli({"TTL", "leasehold:token"}), "-1") << "the counter of all locks stays";
}

// For people, and only as long as the server remembers; but so long it does grow.
TEST_F(RedisLive, TokenGrowsWithEveryGrantWhoeverAsks) {
  std::int64_t last = 0;
  for (int life = 0; life < 3; ++life) {
    RawStore store(under.open());
    RawStore another(open_url(under.url() + "?prefix=other:"), "another");
    for (int i = 0; i < 3; ++i) {
      const RequestId request = new_request();
      EXPECT_EQ(store.token(request), ++last);
      EXPECT_EQ(store.token(request), last) << "the same grant";
      EXPECT_EQ(store.inspect()->last_token->value(), last);
      EXPECT_EQ(store.release(request), ReleaseReply::released);
      const RequestId elsewhere = new_request();
      EXPECT_EQ(another.token(elsewhere), ++last) << "from the same counter";
      EXPECT_EQ(another.release(elsewhere), ReleaseReply::released);
    }
    ++last;  // of one that is never released
    ASSERT_TRUE(store.acquire(new_request(), 100ms));
    while (store.inspect()->holder()) std::this_thread::sleep_for(1ms);
    under.restart();
  }
}

TEST_F(RedisLive, TokensAreExactToTheLast) {
  RawStore store(under.open());
  const auto token_after = [&](const std::string& counted) {
    cli({"SET", "leasehold:token", counted});
    const RequestId request = new_request();
    const std::int64_t token = store.token(request);
    EXPECT_EQ(store.inspect()->holder()->token.value(), token);
    EXPECT_EQ(store.token(request), token) << "the same grant";
    EXPECT_EQ(store.release(request), ReleaseReply::released);
    return token;
  };
  constexpr std::int64_t kExact = std::int64_t{1} << 53;
  for (const std::int64_t counted : {kExact - 2, kExact - 1, kExact, kExact + 1, INT64_MAX - 1}) {
    EXPECT_EQ(token_after(std::to_string(counted)), counted + 1);
  }
}

TEST_F(RedisLive, WhatTheyHaveAtTheCountersKeyGrantsNothing) {
  RawStore store(under.open());
  const auto everything = [&] {
    return sorted_keys() + cli({"EVAL", "return redis.sha1hex(redis.call('DUMP', KEYS[1]))", "1",
                                "leasehold:token"});
  };
  const std::vector<std::vector<std::string>> kinds = {
      {"SET", "leasehold:token", "theirs"}, {"SET", "leasehold:token", ""},
      {"SET", "leasehold:token", "-7"},     {"SET", "leasehold:token", "007"},
      {"SET", "leasehold:token", "1.5"},    {"SET", "leasehold:token", "9223372036854775807"},
      {"HSET", "leasehold:token", "a", "b"}};
  for (const auto& kind : kinds) {
    SCOPED_TRACE(kind.back());
    cli({"DEL", "leasehold:token"});
    cli(kind);
    const std::string before = everything();
    const auto refused = store.acquire(new_request(), 30s, true);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::unavailable) << to_string(refused.error());
    EXPECT_THAT(refused.error().store_words, HasSubstr("leasehold:token"));
    EXPECT_EQ(everything(), before);
  }
  cli({"DEL", "leasehold:token"});
  EXPECT_EQ(store.token(new_request()), 1);
}

TEST_F(RedisLive, RepeatedAcquireTellsTheStoreOfItsGrant) {
  RawStore store(under.open());
  const RequestId request = new_request();
  const auto granted = std::get<Granted>(store.acquire(request).value());
  cli({"SET", "leasehold:store", "4 " + std::string(32, 'a')});  // as after a rotation
  EXPECT_EQ(std::get<Granted>(store.acquire(request).value()).store, granted.store);
  EXPECT_EQ(store.release(request), ReleaseReply::released);
  EXPECT_EQ(std::get<Granted>(store.acquire(new_request()).value()).store.hex(),
            std::string(32, 'a'));
}

// A grant is not dated: it began a TTL before its first end.
TEST_F(RedisLive, HowLongItIsHeldIsKnownWhateverEndItHas) {
  RawStore store(under.open());
  const RequestId request = new_request();
  ASSERT_TRUE(store.acquire(request, 1h));
  const auto expect_held_for_half_an_hour = [&](Millis remaining) {
    const auto holder = store.inspect()->holder();
    ASSERT_TRUE(holder);
    EXPECT_GE(holder->held_for, 30min);
    EXPECT_LT(holder->held_for, 31min);
    EXPECT_LE(holder->remaining, remaining);
    EXPECT_GT(holder->remaining, remaining - 1min);
    EXPECT_EQ(holder->owner, "raw");
  };
  cli({"PEXPIRE", "lock:job", std::to_string(Millis(30min).count())});  // as half an hour later
  expect_held_for_half_an_hour(30min);
  for (const Millis ttl : {Millis(2h), Millis(10min)}) {
    EXPECT_EQ(store.try_renew(request, ttl)->at(0), RenewReply::renewed);
    expect_held_for_half_an_hour(ttl);
  }
  EXPECT_EQ(std::get<Granted>(store.acquire(request).value()).fresh, false);
  EXPECT_EQ(store.try_release(request, 3h).value(), ReleaseReply::released);
  expect_held_for_half_an_hour(3h);
  const RequestId kept = new_request();
  ASSERT_EQ(store.force_release(request).value(), ReleaseReply::released);
  ASSERT_TRUE(store.acquire(kept, 1h));
  cli({"PEXPIRE", "lock:job", std::to_string(Millis(30min).count())});
  EXPECT_EQ(store.try_release(kept, 3h).value(), ReleaseReply::released);
  expect_held_for_half_an_hour(3h);
}

TEST_F(RedisLive, DatabasesAreApart) {
  RawStore zero(under.open());
  RawStore three(open_url(under.url() + "/3"));
  ASSERT_TRUE(zero.acquire(new_request()));
  EXPECT_TRUE(std::holds_alternative<Granted>(three.acquire(new_request()).value()));
  EXPECT_EQ(cli({"-n", "3", "EXISTS", "lock:job"}), "1");
}

// ---- round trips and scripts ---------------------------------------------------------------

TEST_F(RedisLive, AcquireRenewAndReleaseAreOneRoundTripEach) {
  rig::TcpProxy proxy(under.server().port());  // counts every command
  RawStore store(open_url("redis://" + proxy.address()));
  const RequestId first = new_request();
  ASSERT_TRUE(store.acquire(first));  // the server learns the scripts
  ASSERT_EQ(store.renew(first), RenewReply::renewed);
  ASSERT_EQ(store.release(first), ReleaseReply::released);
  const std::size_t before = proxy.round_trips();
  const RequestId second = new_request();
  ASSERT_TRUE(store.acquire(second));
  EXPECT_EQ(proxy.round_trips(), before + 1);
  ASSERT_EQ(store.renew(second), RenewReply::renewed);
  EXPECT_EQ(proxy.round_trips(), before + 2);
  ASSERT_EQ(store.release(second), ReleaseReply::released);
  EXPECT_EQ(proxy.round_trips(), before + 3);
  EXPECT_EQ(proxy.requests(), proxy.round_trips()) << "nothing is sent that nobody answers";
  EXPECT_EQ(proxy.connections(), 1u);
}

TEST_F(RedisLive, WillingnessToWaitCostsNothingOnAFreeLock) {
  rig::TcpProxy proxy(under.server().port());
  Client client(open_url("redis://" + proxy.address()));
  ASSERT_TRUE(client.acquire("job", {.wait = 30s})->release());
  const std::size_t before = proxy.round_trips();
  ASSERT_TRUE(client.acquire("job", {.wait = 30s})->release());
  EXPECT_EQ(proxy.round_trips(), before + 2);
  EXPECT_EQ(proxy.connections(), 1u) << "no subscription";
}

TEST_F(RedisLive, ForgottenScriptsAreSentAgain) {
  RawStore store(under.open());
  const RequestId request = new_request();
  cli({"SCRIPT", "FLUSH"});
  EXPECT_TRUE(std::holds_alternative<Granted>(store.acquire(request).value()));
  cli({"SCRIPT", "FLUSH"});
  EXPECT_EQ(store.renew(request), RenewReply::renewed);
  cli({"SCRIPT", "FLUSH"});
  EXPECT_EQ(store.release(request), ReleaseReply::released);
  cli({"SCRIPT", "FLUSH"});
  EXPECT_FALSE(store.inspect()->holder());
}

TEST_F(RedisLive, RestartedServerKnowsNoScriptsAndNoConnection) {
  RawStore store(under.open());
  const RequestId request = new_request();
  ASSERT_TRUE(store.acquire(request));
  under.restart();
  EXPECT_EQ(store.renew(request), RenewReply::renewed) << "a dead connection is noticed in time";
  under.restart();
  EXPECT_EQ(store.release(request), ReleaseReply::released);
  under.restart();
  EXPECT_TRUE(std::holds_alternative<Granted>(store.acquire(new_request()).value()));
}

// ---- waiting -------------------------------------------------------------------------------

TEST_F(RedisLive, DeadWaiterIsPassedOverAtOnce) {
  RawStore holder(under.open());
  RawStore second(under.open());
  const RequestId held = new_request();
  const RequestId behind = new_request();
  ASSERT_TRUE(holder.acquire(held));
  {
    RawStore dead(under.open());  // leaves without a word
    ASSERT_TRUE(dead.acquire(new_request(), 30s, true));
    ASSERT_TRUE(second.acquire(behind, 30s, true));
  }
  while (lines(cli({"PUBSUB", "CHANNELS", "leasehold:wake:*"})).size() != 1) {
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_EQ(holder.release(held), ReleaseReply::released);
  EXPECT_TRUE(second.events.wait_for_nudge(behind, 30s));
}

TEST_F(RedisLive, WaiterThatLeavesWhenItWasWokenWakesTheNext) {
  RawStore store(under.open());
  const RequestId held = new_request();
  const RequestId first = new_request();
  const RequestId second = new_request();
  ASSERT_TRUE(store.acquire(held));
  ASSERT_TRUE(store.acquire(first, 30s, true));
  ASSERT_TRUE(store.acquire(second, 30s, true));
  EXPECT_EQ(store.release(held), ReleaseReply::released);
  ASSERT_TRUE(store.events.wait_for_nudge(first, 30s));
  EXPECT_EQ(store.release(first), ReleaseReply::released);
  EXPECT_TRUE(store.events.wait_for_nudge(second, 30s));
}

TEST_F(RedisLive, SubscriptionComesBackAfterACut) {
  RawStore holder(under.open());
  RawStore waiter(under.open_through_proxies());
  const RequestId held = new_request();
  const RequestId waiting = new_request();
  ASSERT_TRUE(holder.acquire(held));
  ASSERT_TRUE(waiter.acquire(waiting, 30s, true));
  rig::TcpProxy& proxy = *under.proxies().front();
  const std::size_t before = proxy.connections();
  proxy.cut();
  while (proxy.connections() == before) std::this_thread::sleep_for(1ms);  // it noticed
  // Asking again is how its entry learns the channel again.
  Millis recheck{0};
  while (recheck != 1000ms) {
    const auto again = waiter.acquire(waiting, 30s, true);
    if (again) recheck = std::get<Queued>(*again).recheck_after;
  }
  EXPECT_EQ(holder.release(held), ReleaseReply::released);
  EXPECT_TRUE(waiter.events.wait_for_nudge(waiting, 30s));
}

// Its name may lead to the new primary by now.
TEST(RedisServerCall, ConnectionThatIsAnsweredReadOnlyIsDropped) {
  rig::RedisServer primary({.more = {"--repl-diskless-sync-delay", "0"}});
  rig::RedisServer other;
  const auto server = server_at(primary);
  const CallContext context{BootClock::now() + 60s, {}};
  const auto run = [&](std::initializer_list<std::string_view> words) {
    std::string command;
    resp::append_command(command, words);
    return server->run(command, context);
  };
  const auto id = [&] { return run({"CLIENT", "ID"}).value().integer; };
  const auto first = id();
  EXPECT_EQ(id(), first) << "one connection serves all";
  primary.cli({"REPLICAOF", "127.0.0.1", std::to_string(other.port())});
  const auto refused = run({"SET", "a", "b"});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().store_words, HasSubstr("READONLY"));
  EXPECT_NE(id(), first);
}

// An acquire that sat in the network may arrive after the release that took it back, and a release
// after the next acquire of the same request: Redlock takes votes back and asks again.
TEST_F(RedisLive, CallsThatComeLateUndoNothing) {
  const auto server = server_at(under.server());
  const CallContext context{BootClock::now() + 30s, {}};
  const redis::LockKeys keys("lock:job");
  const AcquireCall call{lock_name("job"), new_request(), OwnerLabel::parse("me").value(),
                         Ttl::of(30s).value(), true};
  std::optional<StoreId> store;
  const auto acquire = [&](std::int64_t number) {
    const auto reply = server->run(
        redis::acquire_call(keys, call, call.queue, redis::kNoChannel, store, number), context);
    const auto answer = redis::read_acquire(reply.value(), call, store).value();
    if (const auto* granted = std::get_if<Granted>(&answer)) store = granted->store;
    return answer;
  };
  const auto release = [&](bool doubtful, std::int64_t number) {
    return server
        ->run(redis::release_call(keys, {call.lock, call.request}, doubtful, number), context)
        .value()
        .integer;
  };
  EXPECT_EQ(release(true, 2), 0);
  EXPECT_TRUE(std::holds_alternative<Busy>(acquire(1))) << "sent before the release";
  EXPECT_EQ(cli({"EXISTS", "lock:job"}), "0");
  EXPECT_TRUE(std::holds_alternative<Granted>(acquire(3))) << "sent after it";
  EXPECT_EQ(release(true, 2), 0) << "repeated, and late itself";
  EXPECT_TRUE(std::holds_alternative<Granted>(acquire(5))) << "the same grant";
  EXPECT_EQ(release(true, 4), 0) << "sent before that";
  EXPECT_EQ(release(false, 4), 0);
  EXPECT_EQ(cli({"EXISTS", "lock:job"}), "1");
  EXPECT_EQ(release(true, 6), 1);
  EXPECT_TRUE(std::holds_alternative<Busy>(acquire(1)));
  EXPECT_TRUE(std::holds_alternative<Granted>(acquire(9))) << "asked for again";
  EXPECT_EQ(release(false, 8), 0) << "not in doubt, but late";
  EXPECT_EQ(release(false, 10), 1);
  const std::int64_t left = std::stol(cli({"TTL", redis::released_key(call.request)}));
  EXPECT_GT(left, 3500) << "an acquire may be on its way for an hour";
  EXPECT_LE(left, 3600) << "does not stay";
  server->close();
}

// ---- failover: why the guarantee is efficiency ---------------------------------------------

TEST(RedisFailover, LockIsGrantedTwiceWhenTheReplicaLagsAtThePromotion) {
  rig::RedisServer primary({.more = {"--repl-diskless-sync-delay", "0"}});
  rig::TcpProxy link(primary.port());
  rig::RedisServer replica({.more = {"--replicaof", "127.0.0.1 " + std::to_string(link.port())}});
  while (replica.cli({"INFO", "replication"}).find("master_link_status:up") == std::string::npos) {
    std::this_thread::sleep_for(10ms);
  }
  Client first(open_url(primary.url()));
  ASSERT_TRUE(first.acquire("warm-up"));
  while (replica.cli({"EXISTS", "leasehold:token"}) != "1") {
    std::this_thread::sleep_for(1ms);
  }
  link.hold(true);  // the replica lags
  auto lease = first.acquire("job", {.ttl = 60s});
  ASSERT_TRUE(lease);
  primary.process().kill();
  link.refuse(true);
  link.hold(false);
  replica.cli({"REPLICAOF", "NO", "ONE"});
  Client second(open_url(replica.url()));
  const auto again = second.acquire("job", {.ttl = 60s});
  EXPECT_TRUE(again) << "if this is refused one day, the guarantee can be more than efficiency";
  EXPECT_NE(lease->state(), LeaseState::lost) << "and the first still believes to have it";
  EXPECT_EQ(second.acquire_fenced("another").error().code, ErrorCode::unsafe_for_correctness);
}

}  // namespace
}  // namespace leasehold::testing
