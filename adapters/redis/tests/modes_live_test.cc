// Locks that several hold, in a real redis-server: what other programs see of them and may leave in
// their keys, what they cost, and two faults at a time.
#include <gmock/gmock.h>

#include <future>
#include <regex>
#include <thread>

#include "calls.h"
#include "redis_live.h"

namespace leasehold::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const Mode kShared = Mode::shared();
const std::vector<Mode> kBeside = {kShared, Mode::permit_of(5)};
const std::string kTheirs = "theirs";

class RedisModes : public RedisLive {
 protected:
  static std::optional<Granted> granted(const Result<AcquireReply>& reply) {
    if (!reply || !std::holds_alternative<Granted>(*reply)) return std::nullopt;
    return std::get<Granted>(*reply);
  }
  static bool busy(const Result<AcquireReply>& reply) {
    return reply && std::holds_alternative<Busy>(*reply);
  }
  static bool queued(const Result<AcquireReply>& reply) {
    return reply && std::holds_alternative<Queued>(*reply);
  }
  RequestId take(RawStore& store, Mode mode, Millis ttl = 30s) {
    const RequestId request = new_request();
    EXPECT_TRUE(granted(store.acquire_as(mode, request, false, ttl))) << to_string(mode);
    return request;
  }
  bool recipe_gets_it() {
    const bool got = cli({"SET", "lock:job", "random", "NX", "PX", "30000"}) == "OK";
    if (got) cli({"DEL", "lock:job"});
    return got;
  }
  void expect_side_keys_end_within(Millis most, Mode mode) {
    for (const std::string word : {"ends", "holders", "slots"}) {
      if (word == "slots" && !mode.is_permit()) continue;
      const std::int64_t left = std::stol(cli({"PTTL", "leasehold:" + word + ":lock:job"}));
      EXPECT_GT(left, 0) << word;
      EXPECT_LE(left, most.count()) << word;
    }
  }
  std::int64_t ttl_of_key() { return std::stol(cli({"PTTL", "lock:job"})); }
  std::string everything() {
    return sorted_keys() +
           cli({"EVAL",
                "local all = {} for i, k in ipairs(redis.call('KEYS', '*')) do all[i] = k .. "
                "redis.sha1hex(redis.call('DUMP', k)) end table.sort(all) return all",
                "0"});
  }
  void expect_refused(const Result<AcquireReply>& reply, const std::string& key) {
    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error().code, ErrorCode::unavailable) << to_string(reply.error());
    EXPECT_THAT(reply.error().store_words, HasSubstr(key));
  }
  // How many commands scripts ran while `work` did, by INFO.
  std::int64_t commands(const std::function<void()>& work) {
    cli({"CONFIG", "RESETSTAT"});
    work();
    const std::string info = cli({"INFO", "commandstats"});
    const std::regex calls("cmdstat_([^:]+):calls=([0-9]+)");
    std::int64_t sum = 0;
    for (std::sregex_iterator it(info.begin(), info.end(), calls), end; it != end; ++it) {
      const std::string command = (*it)[1];
      const bool ours = command == "info" || command.starts_with("eval") ||
                        command.starts_with("config") || command.starts_with("client") ||
                        command == "hello" || command == "ping" || command == "command";
      if (!ours) sum += std::stol((*it)[2]);
    }
    return sum;
  }
};

// ---- other programs ------------------------------------------------------------------------

TEST_F(RedisModes, TheRecipeIsKeptOutUntilTheLastHasLeft) {
  for (const Mode mode : kBeside) {
    SCOPED_TRACE(to_string(mode));
    RawStore store(under.open());
    const RequestId first = take(store, mode);
    const RequestId second = take(store, mode);
    EXPECT_EQ(cli({"TYPE", "lock:job"}), "string");
    EXPECT_FALSE(recipe_gets_it());
    EXPECT_EQ(store.release(first), ReleaseReply::released);
    EXPECT_FALSE(recipe_gets_it());
    EXPECT_EQ(store.release(second), ReleaseReply::released);
    EXPECT_TRUE(recipe_gets_it());
    EXPECT_EQ(sorted_keys(), "leasehold:store\nleasehold:token\n") << "nothing is left behind";
  }
}

TEST_F(RedisModes, TheKeyLastsAsLongAsTheLongestGrant) {
  for (const Mode mode : kBeside) {
    SCOPED_TRACE(to_string(mode));
    RawStore store(under.open());
    const RequestId hour = take(store, mode, 1h);
    const RequestId moment = take(store, mode, 30s);
    EXPECT_GT(ttl_of_key(), 3'500'000);
    EXPECT_EQ(store.release(hour), ReleaseReply::released);
    EXPECT_LE(ttl_of_key(), 30'000);
    EXPECT_EQ(store.try_renew(moment, 2h)->at(0), RenewReply::renewed);
    EXPECT_GT(ttl_of_key(), 7'000'000);
    EXPECT_EQ(store.try_renew(moment, 10s)->at(0), RenewReply::renewed);
    EXPECT_LE(ttl_of_key(), 10'000);
    const RequestId day = take(store, mode, 24h);
    EXPECT_EQ(store.try_release(moment, 1h), ReleaseReply::released) << "and is kept";
    EXPECT_GT(ttl_of_key(), 80'000'000);
    EXPECT_EQ(store.force_release(day), ReleaseReply::released);
    EXPECT_GT(ttl_of_key(), 3'500'000);
    EXPECT_LE(ttl_of_key(), 3'600'000);
    EXPECT_EQ(store.force_release(moment), ReleaseReply::released);
    EXPECT_EQ(ttl_of_key(), -2);
  }
}

TEST_F(RedisModes, NothingStaysOfThoseWhoDied) {
  RawStore store(under.open());
  for (const Mode mode : kBeside) {
    const RequestId first = take(store, mode);
    take(store, mode, 100ms);
    ASSERT_EQ(store.renew(first), RenewReply::renewed);
    EXPECT_EQ(store.try_renew(first, 100ms)->at(0), RenewReply::renewed);
    while (cli({"EXISTS", "lock:job"}) == "1") std::this_thread::sleep_for(1ms);
    for (const std::string& key : lines(sorted_keys())) {
      if (key == "leasehold:store" || key == "leasehold:token") continue;
      EXPECT_GT(std::stol(cli({"PTTL", key})), 0) << key;
      EXPECT_LE(std::stol(cli({"PTTL", key})), 180'000) << key;
    }
    const RequestId next = take(store, mode);
    EXPECT_THAT(store.inspect()->holders, SizeIs(1));
    EXPECT_EQ(store.release(next), ReleaseReply::released);
  }
}

TEST_F(RedisModes, AKeptLockOfOneHolderLeavesNoKeyForEver) {
  RawStore store(under.open());
  for (const Mode mode : kBeside) {
    // Within one minute, or not: the two ends may lie in the same one.
    for (const Millis kept : {Millis(30s), Millis(90s)}) {
      SCOPED_TRACE(to_string(mode));
      const RequestId only = take(store, mode);
      EXPECT_EQ(store.try_release(only, kept), ReleaseReply::released) << "and is kept";
      expect_side_keys_end_within(kept + 2min, mode);
      EXPECT_EQ(store.force_release(only), ReleaseReply::released);
    }
  }
}

TEST_F(RedisModes, WhatALongHolderLeavesBehindLastsAsLongAsThoseWhoStay) {
  RawStore store(under.open());
  for (const Mode mode : kBeside) {
    SCOPED_TRACE(to_string(mode));
    const RequestId day = take(store, mode, 24h);
    const RequestId moment = take(store, mode, 30s);
    EXPECT_EQ(store.release(day), ReleaseReply::released);
    expect_side_keys_end_within(150s, mode);
    EXPECT_EQ(store.release(moment), ReleaseReply::released);
  }
}

TEST_F(RedisModes, ReadersWhoDiedDoNotPileUp) {
  RawStore store(under.open());
  take(store, kShared, 1h);
  for (int i = 0; i < 50; ++i) take(store, kShared, 100ms);
  while (store.inspect()->holders.size() > 1) std::this_thread::sleep_for(1ms);
  const BootTime patience = BootClock::now() + 30s;
  while (cli({"ZCARD", "leasehold:ends:lock:job"}) != "1" && BootClock::now() < patience) {
    store.release(take(store, kShared));
  }
  EXPECT_EQ(cli({"HLEN", "leasehold:holders:lock:job"}), "1");
}

TEST_F(RedisModes, TheirValueKeepsOutEveryMode) {
  RawStore store(under.open());
  for (const std::vector<std::string>& theirs :
       {std::vector<std::string>{"SET", "lock:job", "random"}, {"HSET", "lock:job", "a", "b"}}) {
    cli(theirs);
    for (const Mode mode : kBeside) {
      const auto reply = store.acquire_as(mode, new_request());
      ASSERT_TRUE(busy(reply));
      EXPECT_EQ(std::get<Busy>(*reply).ahead, "another program");
    }
    cli({"DEL", "lock:job"});
  }
}

TEST_F(RedisModes, WhoseKeyTheyDeletedIsLostAndDoesNotComeBack) {
  for (const Mode mode : kBeside) {
    SCOPED_TRACE(to_string(mode));
    RawStore store(under.open());
    const RequestId lost = take(store, mode);
    EXPECT_EQ(cli({"DEL", "lock:job"}), "1");
    EXPECT_EQ(store.renew(lost), RenewReply::gone);
    EXPECT_THAT(store.inspect()->holders, IsEmpty());
    const RequestId writer = take(store, Mode::exclusive());
    EXPECT_EQ(store.renew(lost), RenewReply::gone);
    EXPECT_EQ(store.release(lost), ReleaseReply::not_held);
    EXPECT_EQ(store.release(writer), ReleaseReply::released);
    const RequestId next = take(store, mode);
    ASSERT_THAT(store.inspect()->holders, SizeIs(1));
    EXPECT_EQ(store.inspect()->holders[0].request, next);
    EXPECT_EQ(store.renew(lost), RenewReply::gone);
    EXPECT_EQ(store.release(lost), ReleaseReply::not_held);
    EXPECT_EQ(store.release(next), ReleaseReply::released);
  }
}

TEST_F(RedisModes, WhatTheyHaveAtAKeyOfTheHoldersGrantsNothingAndLetsThemLeave) {
  for (const std::string word : {"ends", "holders", "slots"}) {
    const std::string key = "leasehold:" + word + ":lock:job";
    for (const Mode mode : kBeside) {
      if (word == "slots" && !mode.is_permit()) continue;
      SCOPED_TRACE(key + " " + to_string(mode));
      cli({"FLUSHALL"});
      RawStore store(under.open());
      const RequestId holder = take(store, mode);
      cli({"SET", key, kTheirs});
      const std::string before = everything();
      expect_refused(store.acquire_as(mode, new_request(), true), key);
      EXPECT_FALSE(granted(store.acquire_as(Mode::exclusive(), new_request())));
      EXPECT_EQ(everything(), before);
      const auto shown = store.inspect();
      ASSERT_TRUE(shown) << to_string(shown.error());
      EXPECT_THAT(shown->holders, SizeIs(1));
      EXPECT_EQ(store.release(holder), ReleaseReply::released);
      EXPECT_EQ(cli({"EXISTS", "lock:job"}), "0");
      EXPECT_EQ(cli({"GET", key}), kTheirs);
      EXPECT_EQ(cli({"PTTL", key}), "-1");
      expect_refused(store.acquire_as(mode, new_request(), true), key);
      EXPECT_EQ(cli({"GET", key}), kTheirs) << "not taken for a leftover";
      const RequestId writer = take(store, Mode::exclusive());
      EXPECT_EQ(store.release(writer), ReleaseReply::released);
    }
  }
}

// By an operator, who wanted to clean up.
TEST_F(RedisModes, WhatIsDeletedOfTheHoldersGrantsNothing) {
  const Mode mode = Mode::permit_of(5);
  for (const std::string word : {"ends", "holders", "slots"}) {
    SCOPED_TRACE(word);
    cli({"FLUSHALL"});
    RawStore store(under.open());
    const RequestId holder = take(store, mode);
    cli({"DEL", "leasehold:" + word + ":lock:job"});
    if (word == "holders") {
      EXPECT_EQ(granted(store.acquire_as(mode, new_request()))->slot, Slot{1});
    } else {
      EXPECT_FALSE(granted(store.acquire_as(mode, new_request())));
    }
    EXPECT_FALSE(granted(store.acquire_as(Mode::exclusive(), new_request())));
    const auto seen = store.inspect()->holders;
    ASSERT_FALSE(seen.empty());
    for (const auto& it : seen) {
      EXPECT_EQ(store.force_release(it.request).value(), ReleaseReply::released);
    }
    EXPECT_TRUE(recipe_gets_it()) << "an operator can end it";
    EXPECT_EQ(store.release(holder), ReleaseReply::not_held);
    EXPECT_EQ(granted(store.acquire_as(mode, new_request()))->slot, Slot{0});
  }
}

TEST_F(RedisModes, WhenTheLastKnownHolderLeavesTheLockIsFree) {
  RawStore store(under.open());
  const RequestId known = take(store, kShared);
  const RequestId unknown = take(store, kShared, 1h);
  cli({"ZREM", "leasehold:ends:lock:job", unknown.hex()});
  EXPECT_EQ(store.release(known), ReleaseReply::released);
  EXPECT_TRUE(recipe_gets_it());
  EXPECT_EQ(store.renew(unknown), RenewReply::gone);
}

TEST_F(RedisModes, AForcedReleaseOfAnUnknownCrowdDoesNotEndTheNextOne) {
  RawStore store(under.open());
  take(store, kShared);
  cli({"DEL", "leasehold:ends:lock:job"});
  const auto seen = store.inspect()->holder();
  ASSERT_TRUE(seen && seen->foreign);
  cli({"DEL", "lock:job"});
  const RequestId successor = take(store, kShared);
  EXPECT_EQ(store.force_release(seen->request).value(), ReleaseReply::not_held);
  EXPECT_EQ(store.renew(successor), RenewReply::renewed);
}

TEST_F(RedisModes, WhatTheyHaveAtTheKeyOfThePermitsGrantsNothing) {
  const std::string key = "leasehold:permits:lock:job";
  RawStore store(under.open());
  for (const std::vector<std::string>& theirs : {std::vector<std::string>{"SET", key, kTheirs},
                                                 {"SET", key, "0"},
                                                 {"SET", key, "10001"},
                                                 {"SET", key, ""},
                                                 {"HSET", key, "a", "b"}}) {
    SCOPED_TRACE(theirs.back());
    cli({"DEL", key});
    cli(theirs);
    const std::string before = everything();
    for (const Mode mode : {Mode::exclusive(), kShared, Mode::permit_of(5)}) {
      expect_refused(store.acquire_as(mode, new_request(), true), key);
    }
    EXPECT_FALSE(store.set_permits(3));
    EXPECT_FALSE(store.set_permits(std::nullopt));
    EXPECT_EQ(everything(), before);
    EXPECT_EQ(store.inspect()->set_permits, std::nullopt);
  }
}

TEST_F(RedisModes, ListFindsThemWithoutAPrefix) {
  const std::string url = under.url() + "?prefix=";
  RawStore shared(open_url(url), "catalogue");
  RawStore permits(open_url(url), "gpu");
  RawStore set(open_url(url), "licence");
  take(shared, kShared);
  take(shared, kShared);
  take(permits, Mode::permit_of(5));
  ASSERT_TRUE(set.set_permits(3));
  cli({"SET", "theirs", std::string(32, 'a') + "*permits 0"});
  cli({"SET", "like-ours", std::string(32, 'a') + "*shared by all"});
  Client observer(open_url(url));
  const auto locks = observer.list().value();
  ASSERT_THAT(locks, SizeIs(3));
  EXPECT_EQ(locks[0].lock.str(), "catalogue");
  EXPECT_THAT(locks[0].holders, SizeIs(2));
  EXPECT_EQ(locks[1].holder()->slot, Slot{0});
  EXPECT_EQ(locks[2].set_permits, 3);
  EXPECT_THAT(locks[2].holders, IsEmpty());
}

TEST_F(RedisModes, OperatorsPermitsAreAllThatIsLeftOfAFreeLock) {
  RawStore store(under.open());
  ASSERT_TRUE(store.set_permits(2));
  const RequestId holder = take(store, Mode::permit_of(2));
  EXPECT_EQ(store.release(holder), ReleaseReply::released);
  EXPECT_EQ(sorted_keys(), "leasehold:permits:lock:job\nleasehold:store\nleasehold:token\n");
  EXPECT_EQ(cli({"TTL", "leasehold:permits:lock:job"}), "-1");
  ASSERT_TRUE(store.set_permits(std::nullopt));
  EXPECT_EQ(sorted_keys(), "leasehold:store\nleasehold:token\n");
}

TEST_F(RedisModes, OnceClearedTheNumberOfTheHolderIsInTheLocksOwnKey) {
  RawStore store(under.open());
  const RequestId holder = take(store, Mode::permit_of(1));
  ASSERT_TRUE(store.set_permits(2));
  ASSERT_TRUE(store.set_permits(std::nullopt));
  EXPECT_THAT(cli({"GET", "lock:job"}), EndsWith("*permits 1"));
  EXPECT_GT(ttl_of_key(), 0);
  const auto other = store.acquire_as(Mode::permit_of(2), new_request());
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message, HasSubstr("has 1 permit"));
  EXPECT_TRUE(busy(store.acquire_as(Mode::permit_of(1), new_request())));
  EXPECT_EQ(store.release(holder), ReleaseReply::released);
  take(store, Mode::permit_of(1));
}

// ---- what it costs -------------------------------------------------------------------------

TEST_F(RedisModes, AnExclusiveLockCostsNoCommandMoreThanWithoutModes) {
  RawStore store(under.open());
  take(store, kShared, 100ms);  // the server learns the script
  while (store.inspect()->holder()) std::this_thread::sleep_for(1ms);
  const RequestId warm = take(store, Mode::exclusive());
  EXPECT_EQ(store.release(warm), ReleaseReply::released);
  RequestId request = new_request();
  EXPECT_EQ(commands([&] { request = take(store, Mode::exclusive()); }), 4)
      << "GET, EXISTS, INCR, SET";
  EXPECT_EQ(commands([&] { store.release(request); }), 2) << "GET, DEL";
  request = take(store, Mode::exclusive());
  store.renew(request);
  EXPECT_EQ(commands([&] { store.renew(request); }), 2) << "MGET, PEXPIRE";
}

TEST_F(RedisModes, RoundTripsAreThoseOfAnExclusiveLock) {
  for (const Mode mode : kBeside) {
    SCOPED_TRACE(to_string(mode));
    rig::TcpProxy proxy(under.server().port());
    RawStore store(open_url("redis://" + proxy.address()));
    RequestId request = take(store, mode);
    ASSERT_EQ(store.renew(request), RenewReply::renewed);
    ASSERT_EQ(store.release(request), ReleaseReply::released);
    const std::size_t before = proxy.round_trips();
    request = take(store, mode);
    EXPECT_EQ(proxy.round_trips(), before + 1);
    ASSERT_EQ(store.renew(request), RenewReply::renewed);
    EXPECT_EQ(proxy.round_trips(), before + 2);
    ASSERT_EQ(store.release(request), ReleaseReply::released);
    EXPECT_EQ(proxy.round_trips(), before + 3);
    EXPECT_EQ(proxy.connections(), 1u);
  }
}

TEST_F(RedisModes, AReaderCostsTheSameHoweverManyThereAre) {
  RawStore store(under.open());
  // The least of some: now and then one drops those who have ended, or a minute begins.
  const auto cost = [&] {
    std::int64_t least = INT64_MAX;
    for (int i = 0; i < 10; ++i) {
      least = std::min(least, commands([&] {
                         const RequestId request = take(store, kShared);
                         EXPECT_EQ(store.renew(request), RenewReply::renewed);
                         EXPECT_EQ(store.release(request), ReleaseReply::released);
                       }));
    }
    return least;
  };
  take(store, kShared, 1h);
  const std::int64_t beside_one = cost();
  for (int i = 0; i < 100; ++i) take(store, kShared, 1h);
  EXPECT_EQ(cost(), beside_one);
}

TEST_F(RedisModes, OfManyPermitsTheLowestIsFoundWithoutLookingAtAll) {
  RawStore store(under.open());
  const Mode mode = Mode::permit_of(10'000);
  std::vector<RequestId> holders;
  for (int i = 0; i < 300; ++i) holders.push_back(take(store, mode, 1h));
  for (const std::size_t slot : {7U, 150U, 299U}) {
    EXPECT_EQ(store.release(holders[slot]), ReleaseReply::released);
  }
  const auto next = [&] { return granted(store.acquire_as(mode, new_request()))->slot->number; };
  for (const std::int64_t slot : {7, 150, 299, 300}) {
    std::int64_t got = -1;
    EXPECT_LT(commands([&] { got = next(); }), 40);
    EXPECT_EQ(got, slot);
  }
}

// ---- grants --------------------------------------------------------------------------------

TEST_F(RedisModes, TokensAreExactToTheLast) {
  constexpr std::int64_t kExact = std::int64_t{1} << 53;
  for (const Mode mode : kBeside) {
    for (const std::int64_t counted : {kExact - 1, kExact, INT64_MAX - 1}) {
      RawStore store(under.open());
      cli({"SET", "leasehold:token", std::to_string(counted)});
      const RequestId request = new_request();
      EXPECT_EQ(granted(store.acquire_as(mode, request))->token.value(), counted + 1);
      EXPECT_EQ(granted(store.acquire_as(mode, request))->token.value(), counted + 1);
      EXPECT_EQ(store.inspect()->holder()->token.value(), counted + 1);
      EXPECT_EQ(store.release(request), ReleaseReply::released);
    }
    cli({"DEL", "leasehold:token"});
  }
}

TEST_F(RedisModes, WhoGetsNothingDrawsNoToken) {
  RawStore store(under.open());
  take(store, kShared);
  EXPECT_TRUE(queued(store.acquire_as(Mode::exclusive(), new_request(), true)));
  EXPECT_TRUE(queued(store.acquire_as(kShared, new_request(), true)));
  EXPECT_FALSE(store.acquire_as(Mode::permit_of(5), new_request(), true));
  EXPECT_EQ(cli({"GET", "leasehold:token"}), "1");
}

TEST_F(RedisModes, NobodyComesWithoutAToken) {
  for (const Mode mode : kBeside) {
    for (const bool beside : {false, true}) {
      cli({"FLUSHALL"});
      RawStore store(under.open());
      if (beside) take(store, mode);
      cli({"SET", "leasehold:token", kTheirs});
      const std::string before = everything();
      expect_refused(store.acquire_as(mode, new_request()), "leasehold:token");
      EXPECT_EQ(everything(), before);
    }
  }
}

TEST_F(RedisModes, AnEndedGrantBesideALivingOneIsOver) {
  for (const Mode mode : kBeside) {
    SCOPED_TRACE(to_string(mode));
    RawStore store(under.open());
    const RequestId ended = take(store, mode);
    const RequestId living = take(store, mode, 1h);
    ASSERT_EQ(store.try_renew(ended, 100ms)->at(0), RenewReply::renewed);
    while (store.inspect()->holders.size() == 2) std::this_thread::sleep_for(1ms);
    EXPECT_EQ(store.renew(ended), RenewReply::gone);
    EXPECT_EQ(store.release(ended), ReleaseReply::not_held);
    EXPECT_EQ(store.force_release(ended).value(), ReleaseReply::not_held);
    const auto again = granted(store.acquire_as(mode, ended));
    ASSERT_TRUE(again);
    EXPECT_TRUE(again->fresh) << "another grant";
    if (mode.is_permit()) EXPECT_EQ(again->slot, Slot{0});
    EXPECT_EQ(store.release(ended), ReleaseReply::released);
    EXPECT_EQ(store.release(living), ReleaseReply::released);
    EXPECT_EQ(sorted_keys(), "leasehold:store\nleasehold:token\n");
  }
}

TEST_F(RedisModes, ManyThatEndedTogetherAreOver) {
  const Mode mode = Mode::permit_of(1000);
  RawStore store(under.open());
  const RequestId living = take(store, mode, 1h);
  for (int i = 0; i < 250; ++i) take(store, mode, 2s);
  while (store.inspect()->holders.size() > 1) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(granted(store.acquire_as(mode, new_request()))->slot, Slot{1});
  EXPECT_EQ(cli({"ZCARD", "leasehold:slots:lock:job"}), "2");
  EXPECT_EQ(cli({"HLEN", "leasehold:holders:lock:job"}), "2");
  EXPECT_EQ(store.renew(living), RenewReply::renewed);
}

TEST_F(RedisModes, TheLongestNoteIsShown) {
  const std::string note(Note::kMostBytes, 'n');
  for (const Mode mode : {Mode::exclusive(), kShared, Mode::permit_of(1)}) {
    RawStore store(under.open());
    const RequestId holder = new_request();
    ASSERT_TRUE(granted(store.acquire_as(mode, holder, false, 30s, note)));
    const RequestId waiter = new_request();
    const Mode other = mode.is_permit() ? mode : Mode::exclusive();
    const auto reply = store.acquire_as(other, waiter, true, 30s, note);
    ASSERT_TRUE(queued(reply));
    EXPECT_EQ(std::get<Queued>(*reply).ahead, "raw");
    const auto seen = store.inspect().value();
    EXPECT_EQ(seen.holders.at(0).note, note);
    EXPECT_EQ(seen.holders.at(0).owner, "raw");
    EXPECT_EQ(seen.waiters.at(0).note, note);
    EXPECT_EQ(seen.waiters.at(0).owner, "raw");
    store.release(waiter);
    EXPECT_EQ(store.release(holder), ReleaseReply::released);
  }
}

TEST_F(RedisModes, PermitsCannotBeSetWhileOthersThanPermitsWait) {
  RawStore store(under.open());
  cli({"SET", "lock:job", "random", "PX", "30000"});
  const RequestId waiter = new_request();
  ASSERT_TRUE(queued(store.acquire_as(kShared, waiter, true)));
  cli({"DEL", "lock:job"});
  const auto refused = store.set_permits(2);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::invalid);
  EXPECT_THAT(refused.error().message, HasSubstr("without permits (shared)"));
  EXPECT_EQ(cli({"EXISTS", "leasehold:permits:lock:job"}), "0");
  store.release(waiter);
  EXPECT_TRUE(store.set_permits(2));
}

TEST_F(RedisModes, PermitsCannotBeSetWhileAnotherProgramHasTheLock) {
  RawStore store(under.open());
  for (const std::vector<std::string>& theirs :
       {std::vector<std::string>{"SET", "lock:job", "random"}, {"HSET", "lock:job", "a", "b"}}) {
    SCOPED_TRACE(theirs.front());
    cli(theirs);
    const std::string before = everything();
    const auto refused = store.set_permits(2);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::invalid);
    EXPECT_THAT(refused.error().message, HasSubstr("in use without permits (exclusive)"));
    EXPECT_EQ(everything(), before);
    EXPECT_TRUE(store.set_permits(std::nullopt)) << "to forget them changes nothing for it";
    cli({"DEL", "lock:job"});
  }
  EXPECT_TRUE(store.set_permits(2));
}

TEST_F(RedisModes, RepeatedAcquireTellsTheStoreOfItsGrant) {
  RawStore store(under.open());
  for (const Mode mode : kBeside) {
    const RequestId request = new_request();
    const Granted first = granted(store.acquire_as(mode, request)).value();
    cli({"SET", "leasehold:store", "4 " + std::string(32, 'a')});  // as after a rotation
    const Granted again = granted(store.acquire_as(mode, request)).value();
    EXPECT_EQ(again.store, first.store);
    EXPECT_FALSE(again.fresh);
    EXPECT_EQ(store.release(request), ReleaseReply::released);
    cli({"FLUSHALL"});
  }
}

TEST_F(RedisModes, OnceIsRecordedByWhoHoldsItBesideOthers) {
  Client client(under.open());
  auto first = client.acquire("job", {.mode = kShared});
  auto second = client.acquire("job", {.mode = kShared});
  ASSERT_TRUE(first && second);
  EXPECT_TRUE(client.record(*second, "key", {"a", "b"}));
  EXPECT_TRUE(second->release());
  RawStore store(under.open());
  const auto server = server_at(under.server());
  const auto recorded = [&](const RequestId& request) {
    const CallContext context{BootClock::now() + 30s, {}};
    const redis::LockKeys keys("lock:job");
    return server->run(redis::record_call(keys, request, "other", {"a", "b"}), context)
        .value()
        .integer;
  };
  EXPECT_EQ(recorded(second->request()), 0) << "it has left";
  EXPECT_EQ(recorded(first->request()), 1);
  server->close();
}

// ---- two faults ----------------------------------------------------------------------------

// As CallsThatComeLateUndoNothing, for one that holds the lock beside another.
TEST_F(RedisModes, CallsThatComeLateUndoNothing) {
  const auto server = server_at(under.server());
  const CallContext context{BootClock::now() + 60s, {}};
  const redis::LockKeys keys("lock:job");
  RawStore store(under.open());
  for (const Mode mode : kBeside) {
    SCOPED_TRACE(to_string(mode));
    const RequestId other = take(store, mode);
    AcquireCall call{lock_name("job"),     new_request(), OwnerLabel::parse("me").value(),
                     Ttl::of(30s).value(), true,          mode};
    const auto acquire = [&](std::int64_t number) {
      const auto reply = server->run(
          redis::acquire_call(keys, call, call.queue, redis::kNoChannel, std::nullopt, number),
          context);
      return redis::read_acquire(reply.value(), call, std::nullopt);
    };
    const auto release = [&](bool doubtful, std::int64_t number, Millis keep_for = 0ms) {
      return server
          ->run(redis::release_call(keys, {call.lock, call.request, keep_for}, doubtful, number),
                context)
          .value()
          .integer;
    };
    EXPECT_EQ(release(true, 2), 0);
    EXPECT_TRUE(busy(acquire(1))) << "sent before the release";
    EXPECT_THAT(store.inspect()->holders, SizeIs(1));
    const Granted first = granted(acquire(3)).value();
    EXPECT_EQ(release(true, 2), 0) << "repeated, and late itself";
    EXPECT_EQ(granted(acquire(5))->token, first.token);
    EXPECT_EQ(release(true, 4), 0) << "sent before that";
    EXPECT_THAT(store.inspect()->holders, SizeIs(2));
    EXPECT_EQ(release(false, 6, 1h), 1);
    EXPECT_EQ(release(false, 7, 1h), 1) << "its answer was lost";
    EXPECT_TRUE(busy(acquire(8))) << "it is kept, and not taken again";
    EXPECT_EQ(store.force_release(call.request).value(), ReleaseReply::released);
    EXPECT_EQ(release(false, 9, 1h), 0) << "an operator has ended it meanwhile";
    ASSERT_THAT(store.inspect()->holders, SizeIs(1));
    EXPECT_EQ(store.release(other), ReleaseReply::released);
  }
  server->close();
}

TEST_F(RedisModes, AFullServerKeepsThoseWhoAreThereAndLetsThemLeave) {
  for (const Mode mode : kBeside) {
    SCOPED_TRACE(to_string(mode));
    RawStore store(under.open());
    const RequestId first = take(store, mode);
    const RequestId second = take(store, mode);
    ASSERT_EQ(store.renew(first), RenewReply::renewed);
    under.server().cli({"CONFIG", "SET", "maxmemory", "1"});
    const std::string before = everything();
    expect_refused(store.acquire_as(mode, new_request()), "OOM");
    EXPECT_EQ(everything(), before);
    EXPECT_EQ(store.renew(first), RenewReply::renewed);
    EXPECT_EQ(store.try_renew(second, 1h)->at(0), RenewReply::renewed);
    EXPECT_GT(ttl_of_key(), 3'500'000);
    EXPECT_EQ(store.release(first), ReleaseReply::released);
    EXPECT_EQ(store.release(second), ReleaseReply::released);
    under.server().cli({"CONFIG", "SET", "maxmemory", "0"});
  }
}

TEST_F(RedisModes, AServerThatWasKilledAfterAnOperatorsChangeKnowsBoth) {
  RawStore store(under.open());
  const RequestId holder = take(store, Mode::permit_of(1), 10min);
  const RequestId waiter = new_request();
  ASSERT_TRUE(queued(store.acquire_as(Mode::permit_of(1), waiter, true)));
  ASSERT_TRUE(store.set_permits(2));
  under.kill();
  under.start();
  EXPECT_EQ(store.renew(holder), RenewReply::renewed);
  EXPECT_EQ(granted(store.acquire_as(Mode::permit_of(1), waiter, true))->slot, Slot{1});
  EXPECT_TRUE(busy(store.acquire_as(Mode::permit_of(2), new_request())));
}

TEST_F(RedisModes, AWriterThatDiedWaitingKeepsNoReaderOutThoughItsReplyIsLost) {
  RawStore store(under.open());
  const RequestId early = take(store, kShared);
  {
    RawStore dead(under.open());  // leaves without a word
    ASSERT_TRUE(queued(dead.acquire_as(Mode::exclusive(), new_request(), true)));
    EXPECT_TRUE(busy(store.acquire_as(kShared, new_request())));
  }
  while (lines(cli({"PUBSUB", "CHANNELS", "leasehold:wake:*"})).size() != 0) {
    std::this_thread::sleep_for(1ms);
  }
  Client proxied(under.open_through_proxies());
  rig::TcpProxy& proxy = *under.proxies().front();
  proxy.arm(rig::WireFault::cut_after);
  auto reader = proxied.acquire("job", {.mode = kShared});
  ASSERT_TRUE(reader) << to_string(reader.error());
  EXPECT_THAT(store.inspect()->holders, SizeIs(2)) << "granted once";
  EXPECT_EQ(store.release(early), ReleaseReply::released);
  EXPECT_TRUE(reader->release());
  EXPECT_EQ(cli({"EXISTS", "lock:job"}), "0");
}

TEST_F(RedisModes, AWaiterThatLeavesWhenItWasCalledCallsTheNextThatFits) {
  RawStore store(under.open());
  const Mode two = Mode::permit_of(2);
  const RequestId held = take(store, two);
  take(store, two);
  const RequestId first = new_request();
  const RequestId second = new_request();
  ASSERT_TRUE(queued(store.acquire_as(two, first, true)));
  ASSERT_TRUE(queued(store.acquire_as(two, second, true)));
  EXPECT_EQ(store.release(held), ReleaseReply::released);
  ASSERT_TRUE(store.events.wait_for_nudge(first, 30s));
  EXPECT_EQ(store.release(first), ReleaseReply::released);
  EXPECT_TRUE(store.events.wait_for_nudge(second, 30s));
}

// A writer behind whom readers wait hears nothing of them, as it cannot come yet.
TEST_F(RedisModes, AWriterIsNotCalledWhileReadersHoldTheLock) {
  RawStore writers(under.open());
  RawStore readers(under.open());
  take(readers, kShared);
  const RequestId writer = new_request();
  ASSERT_TRUE(queued(writers.acquire_as(Mode::exclusive(), writer, true)));
  const RequestId behind = new_request();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(queued(readers.acquire_as(kShared, behind, true)));
  EXPECT_EQ(writers.events.nudges(), 0u);
}

TEST_F(RedisModes, WaitersThatCannotBeReadHoldUpNoReader) {
  RawStore store(under.open());
  take(store, kShared);
  ASSERT_TRUE(queued(store.acquire_as(Mode::exclusive(), new_request(), true)));
  cli({"SET", "leasehold:waiters:lock:job", kTheirs});
  take(store, kShared);
  cli({"DEL", "leasehold:waiters:lock:job"});
  cli({"DEL", "leasehold:queue:lock:job"});
  cli({"SET", "leasehold:queue:lock:job", kTheirs});
  const RequestId reader = take(store, kShared);
  EXPECT_EQ(store.release(reader), ReleaseReply::released);
  EXPECT_EQ(cli({"GET", "leasehold:queue:lock:job"}), kTheirs);
}

TEST(RedisModesAtAReplica, NothingIsDoneAndItIsSaid) {
  rig::RedisServer primary({.more = {"--repl-diskless-sync-delay", "0"}});
  const rig::RedisServer other(
      {.more = {"--repl-diskless-sync-delay", "600"}});  // sends it nothing
  for (const Mode mode : kBeside) {
    SCOPED_TRACE(to_string(mode));
    RawStore store(open_url(primary.url()));
    const RequestId first = new_request();
    ASSERT_TRUE(store.acquire_as(mode, first));
    ASSERT_TRUE(store.acquire_as(mode, new_request()));
    primary.cli({"REPLICAOF", "127.0.0.1", std::to_string(other.port())});
    const auto expect_read_only = [](const auto& reply) {
      ASSERT_FALSE(reply);
      EXPECT_EQ(reply.error().code, ErrorCode::unavailable) << to_string(reply.error());
      EXPECT_THAT(reply.error().store_words, HasSubstr("READONLY"));
    };
    expect_read_only(store.acquire_as(mode, new_request()));
    expect_read_only(store.try_renew(first));
    expect_read_only(store.try_release(first));
    expect_read_only(store.try_release(first, 1h));
    expect_read_only(store.force_release(first));
    expect_read_only(store.set_permits(mode.is_permit() ? std::optional(7) : std::nullopt));
    primary.cli({"REPLICAOF", "NO", "ONE"});
    EXPECT_EQ(store.try_release(first), ReleaseReply::released);
    primary.cli({"FLUSHALL"});
  }
}

// The user in docs/redis.md, and one who may not publish.
TEST(RedisModesRights, DocumentedUserAndAQuietOneAreEnough) {
  rig::RedisServer server(
      {.more = {"--user",       "locks",         "on",          ">word",  "~lock:*", "~leasehold:*",
                "&leasehold:*", "+@connection",  "+@scripting", "+@read", "+@write", "+@pubsub",
                "+info",        "+time",         "--user",      "quiet",  "on",      ">word",
                "~*",           "resetchannels", "+@all"}});
  for (const std::string user : {"locks", "quiet"}) {
    SCOPED_TRACE(user);
    Client client(open_url("redis://" + user + ":word@" + server.address()));
    auto reader = client.acquire("job", {.mode = kShared});
    ASSERT_TRUE(reader) << to_string(reader.error());
    auto writing =
        std::async(std::launch::async, [&] { return client.acquire("job", {.wait = 30s}); });
    while (client.inspect(lock_name("job"))->waiters.empty()) std::this_thread::sleep_for(1ms);
    EXPECT_EQ(client.acquire("job", {.mode = kShared}).error().code, ErrorCode::busy);
    EXPECT_TRUE(reader->release());
    EXPECT_TRUE(writing.get());
    EXPECT_TRUE(client.set_permits(lock_name("gpu"), 2));
    auto permit = client.acquire("gpu", {.mode = Mode::permit_of(2)});
    ASSERT_TRUE(permit) << to_string(permit.error());
    EXPECT_EQ(permit->release_after(50ms).value(), ReleaseOutcome::released);
    EXPECT_TRUE(client.set_permits(lock_name("gpu"), std::nullopt));
  }
}

}  // namespace
}  // namespace leasehold::testing
