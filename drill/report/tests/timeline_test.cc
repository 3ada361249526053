#include "timeline.h"

#include <gmock/gmock.h>

#include "../../tests/story.h"
#include "made_up.h"
#include "packed.h"

namespace leasehold::drill {
namespace {

using testing::ElementsAre;
using testing::Field;
using testing::IsEmpty;
using testing::SizeIs;

Timeline drawn(Story& story) {
  story.history.sort();
  return timeline_of(story.history);
}

TEST(TimelineTest, ALeaseLastsFromItsGrantToItsRelease) {
  Story story;
  story.at(100).gets(1, 7, 500).at(300).client(1, Kind::invoke, Operation::release);
  const Timeline timeline = drawn(story);
  ASSERT_THAT(timeline.lanes, SizeIs(1));
  EXPECT_EQ(timeline.lanes[0].lock, "a");
  EXPECT_EQ(owner_at(timeline.lanes[0], 0), "client 1");
  ASSERT_THAT(timeline.lanes[0].held, SizeIs(1));
  const Held& held = timeline.lanes[0].held[0];
  EXPECT_EQ(held.from, 100);
  EXPECT_EQ(held.until, 300);
  EXPECT_EQ(held.to, 300);
  EXPECT_EQ(held.first_token, 7);
}

TEST(TimelineTest, AfterItsDeadlineALeaseIsOnlyBelieved) {
  Story story;
  story.at(100).gets(1, 7, 200).at(300).client(1, Kind::invoke, Operation::release);
  const Held held = drawn(story).lanes.at(0).held.at(0);
  EXPECT_EQ(held.until, 200);
  EXPECT_EQ(held.to, 300);
}

TEST(TimelineTest, ARenewalMovesTheDeadlineAndItsFailureEndsTheLease) {
  Story story;
  story.at(100).gets(1, 7, 200).at(150).client(1, Kind::ok, Operation::renew, 7, 350);
  story.at(340).client(1, Kind::fail, Operation::renew, 7);
  const Held held = drawn(story).lanes.at(0).held.at(0);
  EXPECT_EQ(held.until, 340);
  EXPECT_EQ(held.to, 340);
}

TEST(TimelineTest, AKillEndsTheLeaseAndIsMarked) {
  Story story;
  story.at(100).gets(1, 7, 900).at(150).crash(1).at(400).asks(2);
  const Timeline timeline = drawn(story);
  const Lane& lane = timeline.lanes.at(0);
  EXPECT_EQ(lane.held.at(0).to, 150);
  EXPECT_THAT(lane.marks, ElementsAre(Field(&Mark::sign, Sign::kill)));
  EXPECT_THAT(lane.faults, IsEmpty());
}

TEST(TimelineTest, WhoIsKilledLeavesTheLaneToTheNext) {
  Story story;
  story.at(100).gets(1, 7, 900).at(150).crash(1).at(400).gets(2, 8, 900);
  story.at(450).gets(3, 9, 900).at(500).crash(2);
  const Timeline timeline = drawn(story);
  ASSERT_THAT(timeline.lanes, SizeIs(2));
  EXPECT_EQ(owner_at(timeline.lanes[0], 399), "client 1");
  EXPECT_EQ(owner_at(timeline.lanes[0], 400), "client 2");
  EXPECT_EQ(owner_at(timeline.lanes[1], 450), "client 3");
  EXPECT_THAT(timeline.lanes[0].held, SizeIs(2));
  EXPECT_THAT(timeline.lanes[0].marks, SizeIs(2));
}

TEST(TimelineTest, LanesAreInTheOrderOfTheirNumbers) {
  Story story;
  story.at(100).gets(10, 7, 900).gets(9, 8, 900);
  const Timeline timeline = drawn(story);
  EXPECT_EQ(owner_at(timeline.lanes.at(0), 0), "client 9");
  EXPECT_EQ(owner_at(timeline.lanes.at(1), 0), "client 10");
}

TEST(TimelineTest, WritesAreMarkedInTheLaneOfTheirWriter) {
  Story story;
  story.at(100).gets(1, 7, 200).at(300).gets(2, 8, 900);
  story.read(8, 2, 0).write(8, 2, 0, 1).refuse(7, 1);
  const Timeline timeline = drawn(story);
  ASSERT_THAT(timeline.lanes, SizeIs(2));
  EXPECT_THAT(timeline.lanes[0].marks, ElementsAre(Field(&Mark::sign, Sign::refused)));
  EXPECT_THAT(timeline.lanes[1].marks, ElementsAre(Field(&Mark::sign, Sign::accepted)));
}

TEST(TimelineTest, AWriteBelowTheMarkIsStale) {
  Story story;
  story.at(100).gets(1, 7, 200).at(300).gets(2, 8, 900).read(8, 2, 0).write(7, 1, 0, 1);
  const Timeline timeline = drawn(story);
  EXPECT_THAT(timeline.lanes.at(0).marks, ElementsAre(Field(&Mark::sign, Sign::stale)));
}

TEST(TimelineTest, AWriteAtAnotherSlotIsNotStale) {
  Story story;
  story.permit(2, 0).grant(1, 1).permit(2, 1).grant(2, 2);
  story.permit(2, 1).write(2, 2, 0, 20).permit(2, 0).write(1, 1, 0, 10);
  story.permit(2, 1).write(1, 1, 20, 30);
  const Timeline timeline = drawn(story);
  EXPECT_THAT(timeline.lanes.at(0).marks,
              ElementsAre(Field(&Mark::sign, Sign::accepted), Field(&Mark::sign, Sign::accepted),
                          Field(&Mark::sign, Sign::stale)));
}

TEST(TimelineTest, AFaultOfNoWorkerHasALaneOfItsOwnAtTheEnd) {
  Story story;
  story.at(10).storm(true).at(100).gets(1, 7, 200).at(300).storm(false);
  const Timeline timeline = drawn(story);
  ASSERT_THAT(timeline.lanes, SizeIs(2));
  EXPECT_EQ(owner_at(timeline.lanes[1], 0), "network");
  EXPECT_EQ(timeline.lanes[1].lock, "");
  ASSERT_THAT(timeline.lanes[1].faults, SizeIs(1));
  EXPECT_EQ(timeline.lanes[1].faults[0].from, 10);
  EXPECT_EQ(timeline.lanes[1].faults[0].to, 300);
}

TEST(TimelineTest, AFaultThatWasNotHealedLastsToTheEnd) {
  Story story;
  story.at(10).storm(true).at(100).gets(1, 7, 200).at(300).asks(2);
  EXPECT_EQ(drawn(story).lanes.at(1).faults.at(0).to, 300);
}

struct Sums {
  std::uint64_t held = 0, faults = 0, accepted = 0, refused = 0;
  std::size_t items = 0;
};

Sums sums_of(const Timeline& timeline) {
  Sums sums;
  for (const Lane& lane : timeline.lanes) {
    sums.items += lane.held.size() + lane.faults.size() + lane.marks.size();
    for (const Held& held : lane.held) sums.held += held.count;
    for (const FaultSpan& fault : lane.faults) sums.faults += fault.count;
    for (const Mark& mark : lane.marks) {
      (mark.sign == Sign::accepted ? sums.accepted : sums.refused) += mark.count;
    }
  }
  return sums;
}

TEST(ThinnedTest, DrawsFewerThingsAndForgetsNone) {
  const MadeUp made = made_up({.seconds = 20, .locks = 1});
  const Timeline all = timeline_of(made.history);
  const Timeline fewer = thinned(all, 200'000'000, false);
  const Sums before = sums_of(all), after = sums_of(fewer);
  EXPECT_LT(after.items, before.items / 4);
  EXPECT_EQ(after.held, before.held);
  EXPECT_EQ(after.faults, before.faults);
  EXPECT_EQ(after.accepted, before.accepted);
  EXPECT_EQ(after.refused, before.refused);
  EXPECT_EQ(after.refused, 400);
}

TEST(ThinnedTest, KeepsWhatIsNearAFaultIfAsked) {
  // Much quiet between the cycles.
  const MadeUp made =
      made_up({.seconds = 20, .cycles_per_second = 1, .quiet_per_cycle = 200, .locks = 1});
  const Timeline all = timeline_of(made.history);
  const Timeline fewer = thinned(all, 500'000'000, true);
  EXPECT_LT(sums_of(fewer).items, sums_of(all).items / 2);
  for (const Lane& lane : fewer.lanes) {
    for (const FaultSpan& fault : lane.faults) EXPECT_EQ(fault.count, 1);
    for (const Mark& mark : lane.marks) {
      if (mark.sign == Sign::refused) {
        EXPECT_EQ(mark.count, 1);
      }
    }
    for (const Held& held : lane.held) {
      if (held.until != held.to) {
        EXPECT_EQ(held.count, 1);
      }
    }
  }
}

TEST(PackedTest, IsAsItsHeaderSays) {
  Timeline timeline{1000, 9000, {}};
  timeline.lanes.push_back({"a", {{0, "b"}}, {{2000, 4000, 5000, 7, 7}}, {}, {}});
  // 1 lease, 0 faults, 0 marks; from 1, lease 2, believed 1, token +7, +0, one of it
  EXPECT_EQ(packed(timeline), "AQAAAQIBDgAA");
}

TEST(PackedTest, FillsUpTheLastCharacters) {
  Timeline timeline{0, 9000, {}};
  timeline.lanes.push_back({"a", {{0, "b"}}, {}, {}, {{200'000, -1, Sign::kill, 3}}});
  // 0, 0, 1; time 200 in two bytes, 3, -1 as 1, 3 - 1
  EXPECT_EQ(packed(timeline), "AAAByAEDAQI=");
}

}  // namespace
}  // namespace leasehold::drill
