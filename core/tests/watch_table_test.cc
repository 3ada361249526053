// What is news to whom, and when to look: in virtual time, without threads.
#include "watch/watch_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "leasehold/random.h"
#include "testing/virtual_time.h"

namespace leasehold::watch {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const Error kDown(ErrorCode::unavailable, "the store is down");

LockName name(const std::string& text) {
  return LockName::parse(text).value();
}

LockStatus::Holder holder(std::int64_t token, Millis remaining = 30s) {
  RequestId::Bytes id{};
  id[0] = static_cast<std::uint8_t>(token);
  return {.request = RequestId(id),
          .token = TokenNumber::of(token).value(),
          .owner = "host:1:test",
          .held_for = 0ms,
          .remaining = remaining};
}

LockStatus status(const std::string& lock, std::vector<LockStatus::Holder> holders = {},
                  std::optional<std::int64_t> last_token = {}) {
  LockStatus made{.lock = name(lock),
                  .store = std::nullopt,
                  .last_token = std::nullopt,
                  .holders = std::move(holders),
                  .waiters = {}};
  if (last_token) made.last_token = TokenNumber::of(*last_token).value();
  return made;
}

// "3 sees job:7": watch 3 is told that token 7 holds the lock; "3 sees nothing": why it cannot.
std::vector<std::string> words(const std::vector<Told>& told) {
  std::vector<std::string> all;
  for (const Told& it : told) {
    std::string text = std::to_string(it.watch) + " sees";
    if (!it.what) text += " nothing";
    if (it.what) {
      for (const LockStatus& lock : *it.what) {
        text += " " + lock.lock.str() + ":";
        for (const auto& one : lock.holders) text += std::to_string(one.token.value());
      }
    }
    all.push_back(text);
  }
  return all;
}

class WatchTable : public ::testing::Test {
 protected:
  BootTime now() const { return clock.now(); }
  // What the next look finds; it must be due.
  std::vector<std::string> look(std::vector<LockStatus> found) {
    const Look what = table.begin_look(now());
    EXPECT_FALSE(what.empty()) << "it is not time to look";
    if (what.all) {
      table.saw_all(now(), found);
    } else {
      for (LockStatus& one : found) table.saw(now(), std::move(one));
    }
    return words(table.take_told());
  }
  std::vector<std::string> fail_to_look(const Error& why = kDown) {
    table.failed(now(), table.begin_look(now()), why);
    return words(table.take_told());
  }
  BootClock::duration until_next_look() { return table.next_look().value() - now(); }
  void wait_for_next_look() { clock.set(table.next_look().value()); }

  leasehold::testing::FakeClock clock;
  Table table;
};

TEST_F(WatchTable, TheStateIsToldAtOnceAndThenWhatChanges) {
  EXPECT_EQ(table.watch(now(), name("job"), {}), 1U);
  EXPECT_EQ(until_next_look(), 0ns);
  EXPECT_THAT(look({status("job")}), ElementsAre("1 sees job:"));
  EXPECT_EQ(until_next_look(), kLookUntold);
  wait_for_next_look();
  EXPECT_THAT(look({status("job")}), IsEmpty());
  wait_for_next_look();
  EXPECT_THAT(look({status("job", {holder(4)})}), ElementsAre("1 sees job:4"));
  wait_for_next_look();
  EXPECT_THAT(look({status("job", {holder(4, 20s)})}), IsEmpty()) << "only time has passed";
  wait_for_next_look();
  EXPECT_THAT(look({status("job", {holder(5)})}), ElementsAre("1 sees job:5"));
  wait_for_next_look();
  EXPECT_THAT(look({status("job")}), ElementsAre("1 sees job:"));
}

TEST_F(WatchTable, OneOfSeveralHoldersWhoComesOrGoesIsNews) {
  (void)table.watch(now(), name("job"), {});
  (void)look({status("job", {holder(1), holder(2)})});
  wait_for_next_look();
  EXPECT_THAT(look({status("job", {holder(2)})}), ElementsAre("1 sees job:2"));
  wait_for_next_look();
  EXPECT_THAT(look({status("job", {holder(2), holder(3)})}), ElementsAre("1 sees job:23"));
}

TEST_F(WatchTable, AHolderWhoStoppedWorkingIsNews) {
  (void)table.watch(now(), name("job"), {});
  (void)look({status("job", {holder(1)})});
  wait_for_next_look();
  LockStatus kept = status("job", {holder(1)});
  kept.holders.front().kept = true;
  EXPECT_THAT(look({kept}), ElementsAre("1 sees job:1"));
}

TEST_F(WatchTable, WhoCameAndWentIsToldByTheLastToken) {
  (void)table.watch(now(), name("job"), {});
  (void)look({status("job", {}, 4)});
  wait_for_next_look();
  EXPECT_THAT(look({status("job", {}, 5)}), ElementsAre("1 sees job:"));
  wait_for_next_look();
  EXPECT_THAT(look({status("job")}), IsEmpty()) << "the store has only forgotten it";
  wait_for_next_look();
  EXPECT_THAT(look({status("job", {}, 5)}), IsEmpty());
  wait_for_next_look();
  EXPECT_THAT(look({status("job", {}, 6)}), ElementsAre("1 sees job:"));
}

TEST_F(WatchTable, WhatCannotBeSeenIsToldOnceAndThenTheStateAgain) {
  (void)table.watch(now(), name("job"), {});
  (void)look({status("job", {holder(1)})});
  wait_for_next_look();
  EXPECT_THAT(fail_to_look(), ElementsAre("1 sees nothing"));
  wait_for_next_look();
  EXPECT_THAT(fail_to_look(), IsEmpty());
  wait_for_next_look();
  EXPECT_THAT(look({status("job", {holder(1)})}), ElementsAre("1 sees job:1")) << "unchanged";
  wait_for_next_look();
  EXPECT_THAT(fail_to_look(), ElementsAre("1 sees nothing"));
}

TEST_F(WatchTable, WhatTheStoreTellsIsLookedAtAtOnce) {
  (void)table.watch(now(), name("job"), {});
  (void)table.watch(now(), name("other"), {});
  table.tells(now());
  (void)look({status("job"), status("other")});
  EXPECT_EQ(until_next_look(), kLookTold);
  clock.advance(500ms);
  table.changed(now(), name("job"));
  EXPECT_EQ(until_next_look(), 0ns);
  const Look what = table.begin_look(now());
  EXPECT_THAT(what.locks, ElementsAre(name("job")));
  table.saw(now(), status("job", {holder(1)}));
  EXPECT_THAT(words(table.take_told()), ElementsAre("1 sees job:1"));
  // A lock that changes all the time does not keep the store busy.
  clock.advance(1ms);
  table.changed(now(), name("job"));
  EXPECT_EQ(until_next_look(), kBetweenLooks - 1ms);
}

TEST_F(WatchTable, AChangeDuringALookIsLookedAtAgain) {
  (void)table.watch(now(), name("job"), {});
  const Look what = table.begin_look(now());
  clock.advance(5ms);
  table.changed(now(), name("job"));
  table.saw(now(), status("job"));
  EXPECT_EQ(until_next_look(), kBetweenLooks - 5ms);
}

TEST_F(WatchTable, AStoreThatTellsNoMoreMayHaveMissedSomething) {
  (void)table.watch(now(), name("job"), {});
  table.tells_no_more(now(), kDown);
  EXPECT_THAT(table.take_told(), IsEmpty()) << "it never told";
  table.tells(now());
  (void)look({status("job")});
  clock.advance(100ms);
  table.tells_no_more(now(), kDown);
  EXPECT_THAT(words(table.take_told()), ElementsAre("1 sees nothing"));
  EXPECT_EQ(until_next_look(), 0ns);
  EXPECT_THAT(look({status("job")}), ElementsAre("1 sees job:"));
  EXPECT_EQ(until_next_look(), kLookUntold);
}

TEST_F(WatchTable, ALookThatWasOutWhenTheStoreToldNoMoreIsNotBelieved) {
  (void)table.watch(now(), name("job"), {});
  table.tells(now());
  (void)table.begin_look(now());
  table.tells_no_more(now(), kDown);
  table.saw(now(), status("job"));
  EXPECT_THAT(words(table.take_told()), ElementsAre("1 sees nothing"));
  wait_for_next_look();
  EXPECT_THAT(look({status("job", {holder(1)})}), ElementsAre("1 sees job:1"));
}

TEST_F(WatchTable, TheEndOfAHolderIsLookedForWhenItsTimeIsOver) {
  (void)table.watch(now(), name("job"), Millis(1h));
  (void)look({status("job", {holder(1, 700ms), holder(2, 900ms)})});
  EXPECT_EQ(until_next_look(), 700ms);
  wait_for_next_look();
  (void)look({status("job", {holder(2, 0ms)})});
  EXPECT_EQ(until_next_look(), 1h) << "its store does not tell the time left";
}

TEST_F(WatchTable, ALateWatchIsNotToldWhatWasSeenBeforeItCame) {
  (void)table.watch(now(), name("job"), {});
  (void)table.begin_look(now());
  (void)table.watch(now(), name("job"), {});
  table.saw(now(), status("job"));
  EXPECT_THAT(words(table.take_told()), ElementsAre("1 sees job:"));
  EXPECT_THAT(look({status("job")}), ElementsAre("2 sees job:"));
}

TEST_F(WatchTable, TwoOfOneLockShareItsLooks) {
  (void)table.watch(now(), name("job"), Millis(10s));
  const Number often = table.watch(now(), name("job"), Millis(2s));
  EXPECT_THAT(table.take_interests(), SizeIs(1));
  EXPECT_THAT(table.begin_look(now()).locks, SizeIs(1));
  table.saw(now(), status("job"));
  EXPECT_THAT(words(table.take_told()), ElementsAre("1 sees job:", "2 sees job:"));
  EXPECT_EQ(until_next_look(), 2s);
  table.unwatch(often);
  EXPECT_THAT(table.take_interests(), IsEmpty());
  wait_for_next_look();
  (void)look({status("job")});
  EXPECT_EQ(until_next_look(), 10s);
  table.unwatch(1);
  table.unwatch(1);
  EXPECT_EQ(table.next_look(), std::nullopt);
  const auto interests = table.take_interests();
  ASSERT_THAT(interests, SizeIs(1));
  EXPECT_FALSE(interests.front().wanted);
}

TEST_F(WatchTable, WhatIsNotWatchedAnyMoreIsNotTold) {
  const Number watch = table.watch(now(), name("job"), {});
  (void)table.begin_look(now());
  table.unwatch(watch);
  (void)table.watch(now(), name("job"), {});
  table.saw(now(), status("job"));
  EXPECT_THAT(table.take_told(), IsEmpty());
  EXPECT_THAT(look({status("job")}), ElementsAre("2 sees job:"));
}

class ManyWatches : public WatchTable {
 protected:
  ManyWatches() {
    for (int i = 0; i < 1000; ++i) (void)table.watch(now(), name("job" + std::to_string(i)), {});
    table.tells(now());
  }
};

TEST_F(ManyWatches, AreServedByOneList) {
  EXPECT_TRUE(table.begin_look(now()).all);
  table.saw_all(now(), {status("job7", {holder(1)})});
  const auto told = words(table.take_told());
  EXPECT_EQ(until_next_look(), kLookManyTold);
  EXPECT_THAT(told, SizeIs(1000));
  EXPECT_THAT(told, ::testing::Contains("8 sees job7:1"));
  EXPECT_THAT(told, ::testing::Contains("9 sees job8:"));
  wait_for_next_look();
  EXPECT_THAT(look({status("job8", {holder(2)})}), ElementsAre("8 sees job7:", "9 sees job8:2"));
}

TEST_F(ManyWatches, AreLookedAtOneByOneWhenTheyChange) {
  (void)look({});
  clock.advance(100ms);
  table.changed(now(), name("job7"));
  const Look what = table.begin_look(now());
  EXPECT_FALSE(what.all);
  EXPECT_THAT(what.locks, ElementsAre(name("job7")));
}

TEST_F(ManyWatches, GoOnWhereTheStoreCannotList) {
  EXPECT_THAT(fail_to_look(Error(ErrorCode::unsupported, "it cannot list")), IsEmpty());
  wait_for_next_look();
  const Look what = table.begin_look(now());
  EXPECT_FALSE(what.all);
  EXPECT_THAT(what.locks, SizeIs(1000));
}

TEST_F(ManyWatches, OfAStoreThatIsDownAreAllTold) {
  EXPECT_THAT(fail_to_look(), SizeIs(1000));
}

TEST_F(WatchTable, OfAPrefixThoseAreToldThatChange) {
  (void)table.watch_prefix(now(), "gpu/", {});
  EXPECT_THAT(look({status("gpu/1", {holder(1)}), status("gpu/2"), status("job", {holder(2)})}),
              ElementsAre("1 sees gpu/1:1"));
  EXPECT_EQ(until_next_look(), kLookPrefix);
  wait_for_next_look();
  EXPECT_THAT(look({status("gpu/1", {holder(1)}), status("gpu/2", {holder(3)})}),
              ElementsAre("1 sees gpu/2:3"));
  wait_for_next_look();
  EXPECT_THAT(look({status("gpu/2", {holder(3)})}), ElementsAre("1 sees gpu/1:"));
  wait_for_next_look();
  EXPECT_THAT(look({status("gpu/2", {holder(3)})}), IsEmpty());
}

TEST_F(WatchTable, OfAPrefixWithNothingInUseThatIsTold) {
  (void)table.watch_prefix(now(), "gpu/", {});
  EXPECT_THAT(look({}), ElementsAre("1 sees"));
  wait_for_next_look();
  EXPECT_THAT(look({}), IsEmpty());
}

TEST_F(WatchTable, OfAPrefixThatWasNotSeenAllIsToldAndWhatBecameFree) {
  (void)table.watch_prefix(now(), "", {});
  (void)look({status("a", {holder(1)}), status("b", {holder(2)})});
  wait_for_next_look();
  EXPECT_THAT(fail_to_look(), ElementsAre("1 sees nothing"));
  wait_for_next_look();
  EXPECT_THAT(look({status("b", {holder(2)})}), ElementsAre("1 sees b:2 a:"));
}

TEST_F(WatchTable, AStoreThatCannotListTellsAPrefixSoOnce) {
  (void)table.watch_prefix(now(), "gpu/", {});
  EXPECT_THAT(fail_to_look(Error(ErrorCode::unsupported, "it cannot list")),
              ElementsAre("1 sees nothing"));
  EXPECT_EQ(table.next_look(), BootTime::max());
}

TEST_F(WatchTable, OneLockThatCannotBeLookedAtDoesNotHideTheOthers) {
  (void)table.watch(now(), name("bad"), {});
  (void)table.watch(now(), name("job"), {});
  EXPECT_THAT(table.begin_look(now()).locks, SizeIs(2));
  table.failed(now(), {{name("bad")}}, Error(ErrorCode::invalid, "no such name here"));
  table.saw(now(), status("job"));
  EXPECT_THAT(words(table.take_told()), ElementsAre("1 sees nothing", "2 sees job:"));
}

}  // namespace
}  // namespace leasehold::watch
