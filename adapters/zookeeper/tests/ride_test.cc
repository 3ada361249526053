#include "ride.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <map>

namespace leasehold::zookeeper {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const int kDone = 0;

// A server that answers when it is told to, and numbers what it makes.
class SlowRoad final : public Road {
 public:
  struct Request {
    std::vector<std::string> what;
    std::function<void(int rc)> answer;
  };

  void create(const std::string& path, const std::string&, Connection::Created done) override {
    requests.push_back({{"create " + path}, [this, path, done](int rc) {
                          if (rc != kDone) return done(rc, "", {});
                          done(rc, made(path), {.created = ++zxid});
                        }});
  }
  void remove(const std::string& path, Connection::Replied done) override {
    requests.push_back({{"remove " + path}, [this, done](int rc) {
                          if (rc == kDone) ++zxid;
                          done(rc);
                        }});
  }
  void transact(std::vector<Step> steps, Connection::Transacted done) override {
    Request request;
    for (const Step& it : steps) {
      const bool makes = it.kind == Step::Kind::create_numbered;
      request.what.push_back((makes ? "create " : "remove ") + it.path);
    }
    request.answer = [this, steps, done](int rc) {
      std::vector<Stepped> each(steps.size(), Stepped{rc});
      if (rc == kDone) ++zxid;
      for (std::size_t i = 0; i < steps.size() && rc == kDone; ++i) {
        if (steps[i].kind == Step::Kind::create_numbered) each[i].path = made(steps[i].path);
      }
      done(rc, each);
    };
    requests.push_back(std::move(request));
  }
  void exists(const std::string& path, Connection::Read done) override {
    requests.push_back({{"exists " + path}, [this, path, done](int rc) {
                          done(rc, "", {.created = rc == kDone ? made_at.at(path) : 0});
                        }});
  }
  BootTime now() const override { return time; }
  void call_at(BootTime when, std::function<void()> what) override {
    alarms.emplace_back(when, std::move(what));
  }

  // Of the oldest request.
  void answer(int rc = kDone) {
    const Request request = std::move(requests.front());
    requests.pop_front();
    request.answer(rc);
  }
  void pass(Millis span) {
    time += span;
    std::deque<std::pair<BootTime, std::function<void()>>> due;
    std::erase_if(alarms, [&](auto& it) {
      if (it.first > time) return false;
      due.push_back(std::move(it));
      return true;
    });
    for (const auto& it : due) it.second();
  }

  std::deque<Request> requests;
  BootTime time = BootTime(1h);
  std::int64_t zxid = 100;

 private:
  std::string made(const std::string& path) {
    const std::string name = path + std::to_string(next_++);
    made_at[name] = zxid;
    return name;
  }

  int next_ = 1;
  std::map<std::string, std::int64_t> made_at;
  std::deque<std::pair<BootTime, std::function<void()>>> alarms;
};

class RideWithTest : public ::testing::Test {
 protected:
  explicit RideWithTest(int at_once)
      : ride(std::make_shared<Ride>(std::move(road_owned), at_once)) {}
  // What is on its way keeps the ride.
  ~RideWithTest() override {
    ride->close();
    while (!road.requests.empty()) road.answer(kClosing);
  }

  struct Told {
    int rc = 1;  // none yet
    std::string path = {};
    std::int64_t number = 0;
    int times = 0;
    int sent = 0;
  };

  std::shared_ptr<Told> create(const std::string& folder, const std::string& path,
                               bool wanted = true) {
    auto told = std::make_shared<Told>();
    ride->create(
        {folder, path, "", [wanted] { return wanted; }},
        [told](int rc, const std::string& made, const NodeStat& stat) {
          *told = {rc, made, stat.created, told->times + 1, told->sent};
        },
        [told] { ++told->sent; });
    return told;
  }
  std::shared_ptr<Told> remove(const std::string& path) {
    auto told = std::make_shared<Told>();
    ride->remove(path, [told](int rc) {
      told->rc = rc;
      ++told->times;
    });
    return told;
  }
  // What is on its way, oldest first.
  std::vector<std::vector<std::string>> on_the_way() const {
    std::vector<std::vector<std::string>> all;
    for (const auto& it : road.requests) all.push_back(it.what);
    return all;
  }
  using Together = std::vector<std::string>;

  std::unique_ptr<SlowRoad> road_owned = std::make_unique<SlowRoad>();
  SlowRoad& road = *road_owned;
  std::shared_ptr<Ride> ride;
};

// Others wait for the first already.
class RideTest : public RideWithTest {
 protected:
  RideTest() : RideWithTest(1) {}
};

class RideOfThreeTest : public RideWithTest {
 protected:
  RideOfThreeTest() : RideWithTest(3) {}
};

TEST_F(RideTest, AloneGoesAtOnceAndAsItIs) {
  const auto first = create("/a", "/a/x-");
  EXPECT_THAT(on_the_way(), ElementsAre(Together{"create /a/x-"}));
  EXPECT_EQ(first->sent, 1);
  road.answer();
  EXPECT_EQ(first->path, "/a/x-1");
  EXPECT_EQ(first->number, 101);
  const auto second = remove("/a/x-1");
  road.answer();
  EXPECT_EQ(second->rc, kDone);
  EXPECT_THAT(on_the_way(), IsEmpty());
}

TEST_F(RideTest, WhoComesMeanwhileGoesTogetherAndIsToldOfItsOwn) {
  remove("/z/0");
  const auto a = create("/a", "/a/x-");
  const auto b = remove("/b/7");
  const auto c = create("/c", "/c/x-");
  EXPECT_THAT(on_the_way(), ElementsAre(Together{"remove /z/0"}));
  road.answer();
  EXPECT_THAT(on_the_way(), ElementsAre(Together{"create /a/x-", "remove /b/7", "create /c/x-"}));
  const auto next = remove("/d/1");
  road.answer();
  // Before what comes next, which takes longer.
  EXPECT_THAT(on_the_way(), ElementsAre(Together{"exists /a/x-1"}, Together{"remove /d/1"}));
  EXPECT_EQ(b->rc, kDone);
  EXPECT_EQ(a->times, 0) << "its number is not known";
  EXPECT_EQ(a->sent, 1) << "what it sends now comes back later";
  road.answer();
  EXPECT_EQ(a->rc, kDone);
  EXPECT_EQ(a->path, "/a/x-1");
  EXPECT_EQ(c->path, "/c/x-2");
  EXPECT_EQ(a->number, 102);
  EXPECT_EQ(c->number, 102);
  road.answer();
  EXPECT_EQ(next->times, 1);
}

TEST_F(RideTest, RefusedTogetherEachGoesAlone) {
  remove("/z/0");
  const auto a = create("/a", "/a/x-");
  const auto gone = remove("/b/7");
  const auto c = remove("/c/7");
  road.answer();
  road.answer(kNoNode);
  EXPECT_THAT(on_the_way(), ElementsAre(Together{"create /a/x-"}, Together{"remove /b/7"},
                                        Together{"remove /c/7"}));
  EXPECT_EQ(a->times + gone->times + c->times, 0);
  EXPECT_EQ(a->sent, 1);
  road.answer();
  road.answer(kNoNode);
  road.answer();
  EXPECT_EQ(a->path, "/a/x-1");
  EXPECT_EQ(gone->rc, kNoNode);
  EXPECT_EQ(c->rc, kDone);
}

TEST_F(RideTest, LostAnswerIsEverybodysAndNothingIsRepeated) {
  remove("/z/0");
  const auto a = create("/a", "/a/x-");
  const auto b = remove("/b/7");
  road.answer();
  road.answer(kLost);
  EXPECT_THAT(on_the_way(), IsEmpty());
  EXPECT_EQ(a->rc, kLost);
  EXPECT_EQ(b->rc, kLost);
}

TEST_F(RideTest, TwoNodesOfOneLockAreNotMadeInOneTransaction) {
  remove("/z/0");
  create("/a", "/a/x-");
  create("/a", "/a/y-");
  create("/b", "/b/x-");
  road.answer();
  EXPECT_THAT(on_the_way(),
              ElementsAre(Together{"create /a/x-", "create /b/x-"}, Together{"create /a/y-"}));
}

TEST_F(RideTest, WhatNobodyWantsAnyMoreIsNotMade) {
  remove("/z/0");
  const auto unwanted = create("/a", "/a/x-", false);
  const auto wanted = create("/b", "/b/x-");
  road.answer();
  EXPECT_THAT(on_the_way(), ElementsAre(Together{"create /b/x-"}));
  EXPECT_EQ(outcome_of(unwanted->rc), Outcome::refused);
  EXPECT_EQ(unwanted->sent, 0);
  EXPECT_EQ(wanted->times, 0);
}

TEST_F(RideTest, NobodyWaitsLongForWhatHangs) {
  remove("/z/0");
  const auto a = remove("/a/7");
  road.pass(Ride::kPatience - 1ms);
  EXPECT_EQ(on_the_way().size(), 1u);
  road.pass(1ms);
  EXPECT_THAT(on_the_way(), ElementsAre(Together{"remove /z/0"}, Together{"remove /a/7"}));
  remove("/b/7");
  EXPECT_EQ(on_the_way().size(), 2u) << "the second is waited for now";
  road.answer();
  EXPECT_EQ(on_the_way().size(), 1u) << "the one that hung changes nothing";
  road.answer();
  EXPECT_THAT(on_the_way(), ElementsAre(Together{"remove /b/7"}));
}

TEST_F(RideOfThreeTest, AFewGoAtOnceAndOneMoreForEachThatComesBack) {
  const Together a{"remove /a/7"}, b{"remove /b/7"}, c{"remove /c/7"}, d{"remove /d/7"};
  remove("/a/7");
  remove("/b/7");
  remove("/c/7");
  remove("/d/7");
  EXPECT_THAT(on_the_way(), ElementsAre(a, b, c));
  road.answer();
  EXPECT_THAT(on_the_way(), ElementsAre(b, c, d));
}

TEST_F(RideOfThreeTest, MoreThanThatGoTogetherWhenTheFewAreBack) {
  const Together b{"remove /b/7"}, c{"remove /c/7"};
  for (const char* path : {"/a/7", "/b/7", "/c/7", "/d/7", "/e/7"}) remove(path);
  road.answer();
  EXPECT_THAT(on_the_way(), ElementsAre(b, c));
  remove("/f/7");
  road.answer();
  EXPECT_THAT(on_the_way(), ElementsAre(c));
  road.answer();
  const Together rest{"remove /d/7", "remove /e/7", "remove /f/7"};
  EXPECT_THAT(on_the_way(), ElementsAre(rest));
  remove("/g/7");
  EXPECT_THAT(on_the_way(), ElementsAre(rest)) << "it waits for those who ride";
}

TEST_F(RideOfThreeTest, NobodyWaitsLongForAFewThatHang) {
  for (const char* path : {"/a/7", "/b/7", "/c/7", "/d/7"}) remove(path);
  road.pass(Ride::kPatience);
  EXPECT_EQ(on_the_way().size(), 4u);
  road.answer();
  road.answer();
  road.answer();
  remove("/e/7");
  remove("/f/7");
  remove("/g/7");
  EXPECT_EQ(on_the_way().size(), 3u) << "those that hung are not counted twice";
}

TEST_F(RideTest, NumberIsReadAtTheNextNodeIfOneWasRemoved) {
  remove("/z/0");
  const auto a = create("/a", "/a/x-");
  const auto b = create("/b", "/b/x-");
  road.answer();
  road.answer();
  road.answer(kNoNode);
  EXPECT_THAT(on_the_way(), ElementsAre(Together{"exists /b/x-2"}));
  EXPECT_EQ(a->sent, 2) << "what it sent before comes back too early";
  road.answer();
  EXPECT_EQ(a->number, 102);
  EXPECT_EQ(b->number, 102);
}

TEST_F(RideTest, WhoseNumberCannotBeReadMayStandThere) {
  remove("/z/0");
  const auto a = create("/a", "/a/x-");
  const auto b = create("/b", "/b/x-");
  road.answer();
  road.answer();
  road.answer(kNotSent);
  EXPECT_EQ(outcome_of(a->rc), Outcome::lost);
  EXPECT_EQ(outcome_of(b->rc), Outcome::lost);
}

TEST_F(RideTest, BatchIsNotEndless) {
  remove("/z/0");
  for (std::size_t i = 0; i < Ride::kMostRiders + 2; ++i) remove("/a/" + std::to_string(i));
  road.answer();
  ASSERT_EQ(on_the_way().size(), 1u);
  EXPECT_EQ(on_the_way().front().size(), Ride::kMostRiders);
  road.answer();
  EXPECT_EQ(on_the_way().front().size(), 2u);
}

TEST_F(RideTest, ClosedItTellsWhoHasNotLeft) {
  const auto left = remove("/z/0");
  const auto gathered = create("/a", "/a/x-");
  ride->close();
  EXPECT_EQ(gathered->rc, kClosing);
  EXPECT_EQ(left->times, 0);
  road.answer(kClosing);
  EXPECT_EQ(left->rc, kClosing);
  EXPECT_EQ(gathered->times, 1);
  remove("/b/7");
  EXPECT_THAT(on_the_way(), ElementsAre(Together{"remove /b/7"})) << "the road refuses it";
}

}  // namespace
}  // namespace leasehold::zookeeper
