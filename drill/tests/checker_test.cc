#include "leasehold/drill/checker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "story.h"

namespace leasehold::drill {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// The one violation of a history: its check, and the records it names.
struct Found {
  std::string check;
  std::vector<std::size_t> records;
  bool operator==(const Found&) const = default;
};
void PrintTo(const Found& found, std::ostream* out) {
  *out << found.check << " " << ::testing::PrintToString(found.records);
}

std::vector<Found> violations(Story& story) {
  std::vector<Found> found;
  for (const Violation& each : check(story.history).violations) {
    found.push_back({std::string(to_string(each.check)), each.records});
  }
  return found;
}

TEST(CheckerTest, TwoHoldersInTurnAreClean) {
  Story story;
  story.asks(1).grant(1, 1).gets(1, 1, 900).read(1, 1, 0).write(1, 1, 0, 10).told_written(1, 10);
  story.client(1, Kind::invoke, Operation::release).release(1, 1);
  story.client(1, Kind::ok, Operation::release);
  story.asks(2).grant(2, 2).gets(2, 2, 900).read(2, 2, 10).write(2, 2, 10, 20).refuse(1, 1);
  const Report report = check(story.history);
  EXPECT_TRUE(report.clean()) << to_text(report, story.history);
  EXPECT_EQ(report.grants, 2u);
  EXPECT_EQ(report.accepted, 4u);
  EXPECT_EQ(report.refused, 1u);
  EXPECT_EQ(report.overlaps.count, 0u);
}

// ---- I1 ------------------------------------------------------------------------------------

TEST(CheckerTest, TokenThatGoesBackOrRepeatsIsI1) {
  Story back;
  back.grant(5, 1).release(5, 1).grant(4, 2);
  EXPECT_THAT(violations(back), ElementsAre(Found{"I1", {0, 2}}));
  Story same;
  same.grant(5, 1).release(5, 1).grant(5, 1);
  EXPECT_THAT(violations(same), ElementsAre(Found{"I1", {0, 2}}));
}

TEST(CheckerTest, TokensOfDifferentStoresAreNotCompared) {
  Story story;
  story.from(1).grant(5, 1).from(1).release(5, 1).from(2).grant(4, 2);
  EXPECT_THAT(violations(story), ElementsAre());
}

TEST(CheckerTest, OlderTokenToldAfterANewerOneWasKnownIsI1WithoutAStoreLog) {
  Story story;
  story.asks(1).gets(1, 5, 900).asks(2).gets(2, 4, 900);
  EXPECT_THAT(violations(story), ElementsAre(Found{"I1", {1, 3}}));
  Story overlapping;  // asked for before the newer one was told: any order is right
  overlapping.asks(2).asks(1).gets(1, 5, 900).gets(2, 4, 900);
  EXPECT_THAT(violations(overlapping), ElementsAre());
}

TEST(CheckerTest, OldEpochThatGrantsAfterANewerOneIsCountedNotJudged) {
  Story story;
  story.epoch(1).grant(10, 1).release(10, 1);
  story.epoch(2).grant(100, 2).release(100, 2).epoch(1).grant(11, 3);
  const Report report = check(story.history);
  EXPECT_TRUE(report.clean()) << to_text(report, story.history);
  EXPECT_EQ(report.old_epoch_grants, 1u);
}

TEST(CheckerTest, EachEpochIncreasesAndBeginsAboveTheOlderOnes) {
  Story within;
  within.epoch(1).grant(10, 1).release(10, 1).epoch(2).grant(100, 2).release(100, 2);
  within.epoch(1).grant(9, 3);
  EXPECT_THAT(violations(within), ElementsAre(Found{"I1", {0, 4}}));
  Story across;
  across.epoch(1).grant(10, 1).release(10, 1).epoch(2).grant(9, 2);
  EXPECT_THAT(violations(across), ElementsAre(Found{"I1", {0, 2}}));
}

// ---- I2, I3 --------------------------------------------------------------------------------

TEST(CheckerTest, AcceptedTokenBelowTheMarkIsI2AlsoForReads) {
  Story story;
  story.grant(1, 1).release(1, 1).grant(2, 2).read(2, 2, 0).read(1, 1, 0);
  EXPECT_THAT(violations(story), ElementsAre(Found{"I2", {3, 4}}));
}

TEST(CheckerTest, MarksTokenFromAnotherRequestIsI2AndI3) {
  Story story;
  story.grant(1, 1).read(1, 1, 0).read(1, 2, 0);
  EXPECT_THAT(violations(story), ElementsAre(Found{"I2", {1, 2}}, Found{"I3", {2}}));
}

TEST(CheckerTest, TokenThatWasNeverGrantedIsI3) {
  Story story;
  story.grant(1, 1).read(2, 1, 0);
  EXPECT_THAT(violations(story), ElementsAre(Found{"I3", {1}}));
}

TEST(CheckerTest, TokenUsedBeforeItWasGrantedIsI3) {
  Story story;
  story.read(1, 1, 0).grant(1, 1);
  EXPECT_THAT(violations(story), ElementsAre(Found{"I3", {0}}));
}

TEST(CheckerTest, TokenOfAnotherStoreIsI3) {
  Story story;
  story.from(1).grant(1, 1).from(2).grant(2, 2).from(1).read(1, 1, 0).from(2).read(2, 2, 0);
  EXPECT_THAT(violations(story), ElementsAre(Found{"I3", {2, 3}}));
}

TEST(CheckerTest, TokenGrantedToTwoIsI3) {
  Story story;
  story.grant(1, 1).release(1, 1).grant(1, 2);
  EXPECT_THAT(violations(story), ElementsAre(Found{"I1", {0, 2}}, Found{"I3", {0, 2}}));
}

TEST(CheckerTest, ClientToldAnothersTokenIsI3) {
  Story story;
  story.asks(1).asks(2).grant(1, 1).gets(2, 1, 0);
  EXPECT_THAT(violations(story), ElementsAre(Found{"I3", {3}}));
}

TEST(CheckerTest, WithoutAStoreLogLineageComesFromWhatClientsWereTold) {
  Story story;
  story.asks(1).gets(1, 1, 900).read(1, 1, 0).read(2, 2, 0);
  EXPECT_THAT(violations(story), ElementsAre(Found{"I3", {3}}));
}

TEST(CheckerTest, OneRequestMayBeGrantedAgainWithANewToken) {
  Story story;
  story.grant(1, 1).at(2000).expire(1, 1).grant(2, 1).read(2, 1, 0);
  EXPECT_THAT(violations(story), ElementsAre());
}

// ---- I4 ------------------------------------------------------------------------------------

TEST(CheckerTest, WriteOverAnUnreadWriteIsI4) {
  Story story;  // both read 0; the second writes over the first
  story.grant(1, 1).read(1, 1, 0).release(1, 1).grant(2, 2);
  story.write(1, 1, 0, 10).write(2, 2, 0, 20);
  EXPECT_THAT(violations(story), ElementsAre(Found{"I4", {4, 5}}));
}

TEST(CheckerTest, OwnDelayedFirstWriteOverTheSecondIsI4) {
  Story story;
  story.grant(1, 1).write(1, 1, 0, 10).write(1, 1, 10, 20).write(1, 1, 0, 10);
  EXPECT_THAT(violations(story), ElementsAre(Found{"I4", {2, 3}}));
}

TEST(CheckerTest, SameWriteTwiceInARowLosesNothing) {
  Story story;
  story.grant(1, 1).write(1, 1, 0, 10).write(1, 1, 0, 10).write(1, 1, 10, 20);
  EXPECT_THAT(violations(story), ElementsAre());
}

TEST(CheckerTest, StaleReadIsI4) {
  Story story;
  story.grant(1, 1).write(1, 1, 0, 10).read(1, 1, 0);
  EXPECT_THAT(violations(story), ElementsAre(Found{"I4", {1, 2}}));
}

TEST(CheckerTest, AcknowledgedWriteThatNobodyAcceptedIsI4) {
  Story story;
  story.grant(1, 1).write(1, 1, 0, 10).told_written(1, 10).told_written(1, 11);
  EXPECT_THAT(violations(story), ElementsAre(Found{"I4", {3}}));
}

// ---- I5 ------------------------------------------------------------------------------------

TEST(CheckerTest, ReleaseOfAnothersGrantIsI5) {
  Story story;
  story.grant(1, 1).at(2000).expire(1, 1).grant(2, 2).release(2, 1);
  EXPECT_THAT(violations(story), ElementsAre(Found{"I5", {2, 3}}));
}

TEST(CheckerTest, RenewOfAnothersEndedOrReleasedGrantIsI5) {
  Story others;
  others.grant(1, 1).renew(1, 2);
  EXPECT_THAT(violations(others), ElementsAre(Found{"I5", {0, 1}}));
  Story ended;
  ended.at(1).grant(1, 1).at(1001).renew(1, 1);
  EXPECT_THAT(violations(ended), ElementsAre(Found{"I5", {0, 1}}));
  Story in_time;
  in_time.at(1).grant(1, 1).at(1000).renew(1, 1);
  EXPECT_THAT(violations(in_time), ElementsAre());
  Story released;
  released.grant(1, 1).release(1, 1).renew(1, 1);
  EXPECT_THAT(violations(released), ElementsAre(Found{"I5", {0, 2}}));
  Story kept;
  kept.grant(1, 1).release(1, 1, 500).renew(1, 1);
  EXPECT_THAT(violations(kept), ElementsAre(Found{"I5", {0, 2}}));
}

TEST(CheckerTest, RenewThatGrantsAndAcquireThatRenewsAreI5) {
  Story regrant;
  regrant.grant(1, 1).at(2000).expire(1, 1).by(Operation::renew).grant(2, 1);
  EXPECT_THAT(violations(regrant), ElementsAre(Found{"I5", {2}}));
  Story prolong;
  prolong.grant(1, 1).by(Operation::acquire).renew(1, 1);
  EXPECT_THAT(violations(prolong), ElementsAre(Found{"I5", {0, 1}}));
}

// ---- I6 ------------------------------------------------------------------------------------

TEST(CheckerTest, GrantBeforeTheEndOfTheLastIsI6) {
  Story story;
  story.at(1).grant(1, 1).at(1000).grant(2, 2);
  EXPECT_THAT(violations(story), ElementsAre(Found{"I6", {0, 1}}));
  Story in_time;
  in_time.at(1).grant(1, 1).at(1001).grant(2, 2);
  EXPECT_THAT(violations(in_time), ElementsAre());
}

TEST(CheckerTest, RenewalCountsForI6) {
  Story story;
  story.at(1).grant(1, 1).at(900).renew(1, 1).at(1500).grant(2, 2);
  EXPECT_THAT(violations(story), ElementsAre(Found{"I6", {0, 2}}));
}

TEST(CheckerTest, GrantEndedEarlyByTheStoreIsI6) {
  Story story;
  story.at(1).grant(1, 1).at(1000).expire(1, 1).grant(2, 2);
  EXPECT_THAT(violations(story), ElementsAre(Found{"I6", {0, 1}}));
}

TEST(CheckerTest, KeptGrantLastsUntilItsNewEnd) {
  Story story;
  story.at(1).grant(1, 1).at(10).release(1, 1, 300).at(299).grant(2, 2);
  EXPECT_THAT(violations(story), ElementsAre(Found{"I6", {0, 2}}));
  Story in_time;
  in_time.at(1).grant(1, 1).at(10).release(1, 1, 300).at(300).grant(2, 2);
  EXPECT_THAT(violations(in_time), ElementsAre());
}

// ---- I7 ------------------------------------------------------------------------------------

TEST(CheckerTest, ReadersBesideReadersAndPermitsInSlotsOfTheirOwnAreClean) {
  Story shared;
  shared.shared().grant(1, 1).shared().grant(2, 2).release(1, 1).renew(2, 2).release(2, 2);
  shared.grant(3, 3).at(5000).expire(3, 3).shared().grant(4, 4);
  EXPECT_THAT(violations(shared), ElementsAre());
  Story permits;
  permits.permit(2, 0).grant(1, 1).permit(2, 1).grant(2, 2).release(1, 1);
  permits.permit(2, 0).grant(3, 3).at(1002).permit(2, 1).grant(4, 4);  // the second has ended
  EXPECT_THAT(violations(permits), ElementsAre());
}

TEST(CheckerTest, SharedBesideExclusiveIsI7) {
  Story reader;
  reader.grant(1, 1).shared().grant(2, 2);
  EXPECT_THAT(violations(reader), ElementsAre(Found{"I7", {0, 1}}));
  Story writer;  // the first of the readers has ended
  writer.shared().grant(1, 1, 10).shared().grant(2, 2).at(500).grant(3, 3);
  EXPECT_THAT(violations(writer), ElementsAre(Found{"I7", {1, 2}}));
  Story in_time;
  in_time.at(1).grant(1, 1).at(1001).shared().grant(2, 2);
  EXPECT_THAT(violations(in_time), ElementsAre());
}

TEST(CheckerTest, KeptReaderKeepsWritersOutAndNoReaders) {
  Story story;
  story.at(1).shared().grant(1, 1).at(10).release(1, 1, 300).shared().grant(2, 2, 50);
  story.at(299).grant(3, 3);
  EXPECT_THAT(violations(story), ElementsAre(Found{"I7", {0, 3}}));
}

TEST(CheckerTest, PermitBesideAnotherKindIsI7) {
  Story exclusive;
  exclusive.permit(4, 0).grant(1, 1).grant(2, 2);
  EXPECT_THAT(violations(exclusive), ElementsAre(Found{"I7", {0, 1}}));
  Story shared;
  shared.shared().grant(1, 1).permit(4, 0).grant(2, 2);
  EXPECT_THAT(violations(shared), ElementsAre(Found{"I7", {0, 1}}));
}

TEST(CheckerTest, OnePermitTooManyIsI7) {
  Story story;
  story.permit(2, 0).grant(1, 1).permit(2, 1).grant(2, 2).permit(2, 2).grant(3, 3);
  EXPECT_THAT(violations(story), ElementsAre(Found{"I7", {0, 2}}));
}

TEST(CheckerTest, ThereAreAsManyPermitsAsTheLockHasAtTheGrant) {
  Story grown;  // by an operator, while two were out
  grown.permit(2, 0).grant(1, 1).permit(2, 1).grant(2, 2).permit(3, 2).grant(3, 3);
  EXPECT_THAT(violations(grown), ElementsAre());
  Story shrunk;
  shrunk.permit(3, 0).grant(1, 1).permit(3, 1).grant(2, 2).permit(3, 2).grant(3, 3);
  shrunk.release(1, 1).permit(2, 0).grant(4, 4);
  EXPECT_THAT(violations(shrunk), ElementsAre(Found{"I7", {1, 4}}));
}

TEST(CheckerTest, SlotGivenTwiceIsI7) {
  Story story;
  story.permit(3, 1).grant(1, 1).permit(3, 1).grant(2, 2);
  EXPECT_THAT(violations(story), ElementsAre(Found{"I7", {0, 1}}));
}

TEST(CheckerTest, RenewalAndReleaseOfOneOfSeveralHitTheirOwn) {
  Story story;
  story.shared().grant(1, 1).shared().grant(2, 2).renew(1, 1).release(2, 2).renew(1, 1);
  EXPECT_THAT(violations(story), ElementsAre());
  Story other;
  other.shared().grant(1, 1).shared().grant(2, 2).release(1, 2);
  EXPECT_THAT(violations(other), ElementsAre(Found{"I5", {0, 2}}));
}

// ---- Q1 ------------------------------------------------------------------------------------

TEST(CheckerTest, WhoFitsBesideAllBeforeItOvertakesNobody) {
  Story shared;
  shared.grant(1, 1).shared().waits(2).shared().waits(3).release(1, 1);
  shared.shared().grant(2, 3).shared().grant(3, 2);  // both fit, in whatever order they ask
  EXPECT_THAT(violations(shared), ElementsAre());
  Story permits;
  permits.permit(3, 0).grant(1, 1).permit(3).waits(2).permit(3, 1).grant(2, 3);
  permits.permit(3, 2).grant(3, 2);
  EXPECT_THAT(violations(permits), ElementsAre());
}

TEST(CheckerTest, ReaderPastAWriterThatWaitsIsQ1) {
  Story story;
  story.shared().grant(1, 1).waits(2).shared().grant(3, 3);
  EXPECT_THAT(violations(story), ElementsAre(Found{"Q1", {1, 2}}));
  Story gave_up;
  gave_up.shared().grant(1, 1).waits(2).leaves(2).shared().grant(3, 3);
  EXPECT_THAT(violations(gave_up), ElementsAre());
  Story came_later;
  came_later.grant(1, 1).shared().waits(2).waits(3).release(1, 1).shared().grant(2, 2);
  EXPECT_THAT(violations(came_later), ElementsAre());
}

TEST(CheckerTest, WriterPastAnyoneThatWaitsIsQ1) {
  Story story;
  story.grant(1, 1).shared().waits(2).waits(3).release(1, 1).grant(3, 3);
  EXPECT_THAT(violations(story), ElementsAre(Found{"Q1", {1, 4}}));
}

TEST(CheckerTest, LastPermitPastWhoWaitsForItIsQ1) {
  Story story;
  story.permit(2, 0).grant(1, 1).permit(2).waits(2).permit(2, 1).grant(3, 3);
  EXPECT_THAT(violations(story), ElementsAre(Found{"Q1", {1, 2}}));
}

// ---- I8 ------------------------------------------------------------------------------------

TEST(CheckerTest, ReadersInAnyOrderBetweenWritersAreClean) {
  Story story;
  story.grant(1, 1).write(1, 1, 0, 10).release(1, 1).shared().grant(2, 2).shared().grant(3, 3);
  story.shared().read(3, 3, 10).shared().read(2, 2, 10).release(2, 2).release(3, 3);
  story.grant(4, 4).write(4, 4, 10, 20).shared().read(4, 4, 20);  // is that writer
  story.shared().refuse(3, 3).refuse(1, 1);
  EXPECT_THAT(violations(story), ElementsAre());
}

TEST(CheckerTest, ReaderBelowTheWriteMarkIsI8) {
  Story story;
  story.shared().grant(1, 1).at(2000).grant(2, 2).write(2, 2, 0, 10).shared().read(1, 1, 10);
  EXPECT_THAT(violations(story), ElementsAre(Found{"I8", {2, 3}}));
}

TEST(CheckerTest, ReaderWithTheWritersNumberIsI8) {
  Story story;
  story.grant(1, 1).write(1, 1, 0, 10).shared().read(1, 2, 10);
  EXPECT_THAT(violations(story), ElementsAre(Found{"I8", {1, 2}}, Found{"I3", {2}}));
}

TEST(CheckerTest, WriterBelowTheReadMarkIsI8) {
  Story story;
  story.grant(1, 1).at(2000).shared().grant(2, 2).shared().read(2, 2, 0).write(1, 1, 0, 10);
  EXPECT_THAT(violations(story), ElementsAre(Found{"I8", {2, 3}}));
  Story upgraded;  // the last reader itself
  upgraded.shared().grant(1, 1).shared().read(1, 1, 0).write(1, 1, 0, 10);
  EXPECT_THAT(violations(upgraded), ElementsAre());
}

TEST(CheckerTest, RefusalOfAReaderAboveTheWriteMarkIsF1) {
  Story story;
  story.shared().grant(1, 1).shared().grant(2, 2).shared().read(2, 2, 0).shared().refuse(1, 1);
  EXPECT_THAT(violations(story), ElementsAre(Found{"F1", {2, 3}}));
}

TEST(CheckerTest, TokenUpToTheFloorWithoutAMarkIsI8) {
  Story story;
  story.grant(1, 1).release(1, 1).grant(2, 2).write(2, 2, 0, 10).floor(2).sweep().read(2, 2, 10);
  EXPECT_THAT(violations(story), ElementsAre(Found{"I8", {4, 6}}));
  Story refused;
  refused.grant(1, 1).release(1, 1).grant(2, 2).write(2, 2, 0, 10).release(2, 2).floor(2).sweep();
  refused.refuse(1, 1).refuse(2, 2).grant(3, 3).read(3, 3, 10);
  EXPECT_THAT(violations(refused), ElementsAre());
}

TEST(CheckerTest, FloorMattersOnlyWithoutAMarkAndOnlyForItsStore) {
  Story marked;
  marked.grant(1, 1).read(1, 1, 0).floor(9).read(1, 1, 0);
  EXPECT_THAT(violations(marked), ElementsAre());
  Story other;
  other.floor(9).from(2).grant(1, 1).from(2).read(1, 1, 0);
  EXPECT_THAT(violations(other), ElementsAre());
  Story unknown;  // but a fence that was swept may refuse a store that it does not know
  unknown.floor(9).from(2).grant(1, 1).from(2).refuse(1, 1, 1);
  EXPECT_THAT(violations(unknown), ElementsAre());
  Story above;
  above.floor(9).grant(10, 1).refuse(10, 1, 1);
  EXPECT_THAT(violations(above), ElementsAre(Found{"F1", {2}}));
}

TEST(CheckerTest, FloorStaysUnderReadersUntilSomebodyWrites) {
  Story story;
  story.shared().grant(1, 1).shared().grant(3, 3).floor(2);
  story.shared().read(3, 3, 0).shared().refuse(1, 1).shared().read(1, 1, 0);
  EXPECT_THAT(violations(story), ElementsAre(Found{"I8", {2, 5}}));
  Story raised;  // later, so that it says nothing of this resource
  raised.shared().grant(1, 1).shared().grant(3, 3).shared().read(3, 3, 0).floor(9);
  raised.shared().read(1, 1, 0).shared().refuse(1, 1);
  EXPECT_THAT(violations(raised), ElementsAre(Found{"F1", {2, 5}}));
}

TEST(CheckerTest, MarkSweptAboveTheFloorIsI8) {
  Story story;
  story.grant(1, 1).release(1, 1).grant(2, 2).write(2, 2, 0, 10).floor(1).sweep();
  EXPECT_THAT(violations(story), ElementsAre(Found{"I8", {3, 5}}));
}

// ---- several resources of one lock ---------------------------------------------------------

TEST(CheckerTest, EachSlotIsAResourceOfItsOwn) {
  Story story;
  story.permit(2, 0).grant(1, 1).permit(2, 1).grant(2, 2);
  story.permit(2, 1).write(2, 2, 0, 20).permit(2, 0).write(1, 1, 0, 10);
  EXPECT_THAT(violations(story), ElementsAre());
  Story late;
  late.permit(2, 0).grant(1, 1).at(2000).expire(1, 1).permit(2, 0).grant(2, 2);
  late.permit(2, 0).read(2, 2, 0).permit(2, 0).write(1, 1, 0, 10);
  EXPECT_THAT(violations(late), ElementsAre(Found{"I2", {3, 4}}));
}

// ---- H1, F1 --------------------------------------------------------------------------------

TEST(CheckerTest, HolderWhoEndsLaterThanTheStoreIsH1) {
  Story story;
  story.asks(1).at(10).grant(1, 1).gets(1, 1, 1011);
  EXPECT_THAT(violations(story), ElementsAre(Found{"H1", {2}}));
  Story renewed;
  renewed.asks(1).at(10).grant(1, 1).gets(1, 1, 1010);
  renewed.at(500).renew(1, 1).client(1, Kind::ok, Operation::renew, 0, 1501);
  EXPECT_THAT(violations(renewed), ElementsAre(Found{"H1", {4}}));
}

TEST(CheckerTest, RefusalWithoutAReasonIsF1) {
  Story own;
  own.grant(1, 1).read(1, 1, 0).refuse(1, 1, 1);
  EXPECT_THAT(violations(own), ElementsAre(Found{"F1", {1, 2}}));
  Story first;
  first.grant(1, 1).refuse(1, 1, 1);
  EXPECT_THAT(violations(first), ElementsAre(Found{"F1", {1}}));
  Story reasons;
  reasons.grant(1, 1).release(1, 1).grant(2, 2).read(2, 2, 0);
  reasons.refuse(1, 1).refuse(2, 3).from(2).refuse(3, 3).refuse(2, 2, 0);
  EXPECT_THAT(violations(reasons), ElementsAre());
}

TEST(CheckerTest, FalseWordAboutAReleaseIsR1) {
  Story not_released;
  not_released.asks(1).grant(1, 1).gets(1, 1, 900);
  not_released.client(1, Kind::invoke, Operation::release).at(2000).expire(1, 1);
  not_released.client(1, Kind::ok, Operation::release);
  EXPECT_THAT(violations(not_released), ElementsAre(Found{"R1", {5}}));
  Story released;
  released.asks(1).grant(1, 1).gets(1, 1, 900);
  released.client(1, Kind::invoke, Operation::release).release(1, 1);
  released.client(1, Kind::fail, Operation::release);
  EXPECT_THAT(violations(released), ElementsAre(Found{"R1", {5}}));
  Story again;  // a copy of the acquire came late, and was released with the rest
  again.asks(1).grant(1, 1).gets(1, 1, 900);
  again.client(1, Kind::invoke, Operation::release).at(2000).expire(1, 1);
  again.grant(2, 1).release(2, 1).client(1, Kind::fail, Operation::release);
  EXPECT_THAT(violations(again), ElementsAre());
  Story both;  // its own was released before that copy
  both.asks(1).grant(1, 1).gets(1, 1, 900);
  both.client(1, Kind::invoke, Operation::release).release(1, 1);
  both.grant(2, 1).release(2, 1).client(1, Kind::fail, Operation::release);
  EXPECT_THAT(violations(both), ElementsAre(Found{"R1", {7}}));
  Story by_an_operator;
  by_an_operator.asks(1).grant(1, 1).gets(1, 1, 900).force(1, 1);
  by_an_operator.client(1, Kind::invoke, Operation::release);
  by_an_operator.client(1, Kind::fail, Operation::release);
  EXPECT_THAT(violations(by_an_operator), ElementsAre());
}

// ---- D1, L1 --------------------------------------------------------------------------------

TEST(CheckerTest, OverlappingBeliefsAreCountedNotJudged) {
  Story story;  // 1 was stopped: it had no chance to see its deadline at 900
  story.asks(1).grant(1, 1).gets(1, 1, 900).at(2000).expire(1, 1);
  story.asks(2).grant(2, 2).gets(2, 2, 2900);
  story.client(1, Kind::fail, Operation::renew);
  story.client(2, Kind::invoke, Operation::release).release(2, 2).asks(3).grant(3, 3);
  story.gets(3, 3, 2900);
  const Report report = check(story.history);
  EXPECT_TRUE(report.clean()) << to_text(report, story.history);
  EXPECT_EQ(report.overlaps.count, 1u);
  EXPECT_EQ(report.overlaps.before_deadline, 0u);
  EXPECT_THAT(report.overlaps.first, ElementsAre(2, 6));
}

TEST(CheckerTest, OverlapBeforeTheDeadlineIsCountedApart) {
  Story story;
  story.asks(1).gets(1, 1, 900).asks(2).gets(2, 2, 900);
  EXPECT_EQ(check(story.history).overlaps.before_deadline, 1u);
}

TEST(CheckerTest, OnlyBeliefsThatExcludeEachOtherOverlap) {
  const auto overlaps = [](Story& story) { return check(story.history).overlaps.count; };
  Story readers;
  readers.asks(1).shared().gets(1, 1, 900).asks(2).shared().gets(2, 2, 900);
  EXPECT_EQ(overlaps(readers), 0u);
  readers.asks(3).gets(3, 3, 900);
  EXPECT_EQ(overlaps(readers), 2u);
  Story permits;
  permits.asks(1).permit(2, 0).gets(1, 1, 900).asks(2).permit(2, 1).gets(2, 2, 900);
  EXPECT_EQ(overlaps(permits), 0u);
  permits.asks(3).permit(2, 0).gets(3, 3, 900);
  EXPECT_EQ(overlaps(permits), 1u);
}

TEST(CheckerTest, DeadHolderBelievesNothing) {
  Story story;
  story.asks(1).grant(1, 1).gets(1, 1, 900).crash(1).at(2000).expire(1, 1);
  story.asks(2).grant(2, 2).gets(2, 2, 2900);
  EXPECT_EQ(check(story.history).overlaps.count, 0u);
}

TEST(CheckerTest, IdleTimeOfAWantedLockIsMeasured) {
  Story story;
  story.at(1).asks(1).at(10).grant(1, 1).gets(1, 1, 900).at(20).asks(2);
  story.at(100).release(1, 1).at(150).grant(2, 2);
  const Report report = check(story.history);
  EXPECT_EQ(report.liveness.longest_idle, 50);
  EXPECT_EQ(report.liveness.idle_until, 5u);
}

TEST(CheckerTest, PermitThatNobodyHasAndAReaderThatFitsCount) {
  Story permits;
  permits.at(1).permit(2, 0).grant(1, 1).at(100).permit(2).asks(2).at(150).permit(2, 1).grant(2, 2);
  EXPECT_EQ(check(permits.history).liveness.longest_idle, 50);
  Story shortest;  // of two that are taken
  shortest.at(1).permit(2, 0).grant(1, 1, 99).permit(2, 1).grant(2, 2).at(50).permit(2).asks(3);
  shortest.at(150).permit(2, 0).grant(3, 3);
  EXPECT_EQ(check(shortest.history).liveness.longest_idle, 50);
  Story taken;
  taken.at(1).permit(1, 0).grant(1, 1).at(100).permit(1).asks(2);
  taken.at(150).release(1, 1).at(160).permit(1, 0).grant(2, 2);
  EXPECT_EQ(check(taken.history).liveness.longest_idle, 10);
  Story readers;
  readers.at(1).shared().grant(1, 1).at(100).shared().asks(2).at(150).shared().grant(2, 2);
  EXPECT_EQ(check(readers.history).liveness.longest_idle, 50);
  Story writer;
  writer.at(1).shared().grant(1, 1).at(100).asks(2).at(150).release(1, 1).grant(2, 2);
  EXPECT_EQ(check(writer.history).liveness.longest_idle, 1);
}

TEST(CheckerTest, LockThatIsStillWantedAtTheEndCounts) {
  Story story;
  story.at(1).asks(1).grant(1, 1).gets(1, 1, 900).at(500).asks(2);
  story.at(5002).client(3, Kind::invoke, Operation::read);
  EXPECT_EQ(check(story.history).liveness.longest_idle, 4000);  // free at 1002
}

TEST(CheckerTest, FaultsStopTheMeasurementAndTheirEndBeginsOne) {
  Story story;
  story.at(1).storm(true).at(10).asks(1).at(5000).storm(false).at(5200).grant(1, 1);
  const Report report = check(story.history);
  EXPECT_EQ(report.liveness.longest_idle, 200);
  EXPECT_EQ(report.liveness.longest_after_fault, 200);
}

// ---- reports -------------------------------------------------------------------------------

TEST(CheckerTest, SortsFirst) {
  Story story;
  story.at(2000).expire(1, 1);
  story.at(5).asks(7);
  story.at(2001).read(1, 1, 0);
  EXPECT_FALSE(story.history.sorted());
  EXPECT_THAT(violations(story), ElementsAre(Found{"I3", {2}}));
}

TEST(CheckerTest, KeepsTheFirstOfEachCheckAndCountsAll) {
  Story story;
  story.grant(9, 1).release(9, 1);
  for (int i = 1; i <= 8; ++i) story.grant(i, i).release(i, i);
  const Report report = check(story.history, {.violations_kept_per_check = 2});
  EXPECT_EQ(report.count(Check::I1), 8u);
  EXPECT_EQ(report.violations.size(), 2u);
}

TEST(CheckerTest, TextNamesTheRecords) {
  Story story;
  story.grant(5, 1).release(5, 1).grant(4, 2);
  const Report report = check(story.history);
  EXPECT_THAT(to_text(report, story.history),
              HasSubstr("I1: the token is not larger than that of an earlier grant\n"
                        "  #0 0.000000 s store grant acquire lock=a token=5 "));
}

TEST(CheckerTest, WhatOnlyTheStoreCanShowIsNotJudgedWithoutItsLog) {
  Story told;
  told.asks(1).gets(1, 5, 900);
  Story logged;
  logged.asks(1).grant(5, 1).gets(1, 5, 900);
  const Report without = check(told.history);
  const Report with = check(logged.history);
  for (const Check each : {Check::I5, Check::I6, Check::I7, Check::Q1, Check::H1, Check::R1}) {
    EXPECT_FALSE(without.judged(each)) << to_string(each);
    EXPECT_TRUE(with.judged(each)) << to_string(each);
    EXPECT_FALSE(Report{}.judged(each)) << to_string(each);
  }
  for (const Check each : {Check::I1, Check::I2, Check::I3, Check::I4, Check::I8, Check::F1}) {
    EXPECT_TRUE(without.judged(each)) << to_string(each);
  }
  EXPECT_THAT(to_text(without, told.history), HasSubstr("I6: not judged"));
  EXPECT_THAT(to_text(with, logged.history), Not(HasSubstr("not judged")));
}

// ---- without tokens ------------------------------------------------------------------------

TEST(CheckerTest, ClaimsInTurnAreClean) {
  Story story;
  story.asks(1).gets(1, 0, 900).read(0, 1, 0).write(0, 1, 0, 10).told_written(1, 10);
  story.asks(2).gets(2, 0, 900).read(0, 2, 10).refuse(0, 1, 1).write(0, 2, 10, 20);
  const Report report = check(story.history);
  EXPECT_TRUE(report.clean()) << to_text(report, story.history);
  EXPECT_EQ(report.grants, 2u);
}

TEST(CheckerTest, WriteOfWhoWasTakenOverFromIsI2) {
  Story story;
  story.read(0, 1, 0).read(0, 2, 0).write(0, 1, 0, 10);
  EXPECT_THAT(violations(story), ElementsAre(Found{"I2", {1, 2}}));
}

TEST(CheckerTest, RefusalOfTheLastToClaimIsF1) {
  Story story;
  story.read(0, 1, 0).write(0, 1, 0, 10).refuse(0, 1);
  EXPECT_THAT(violations(story), ElementsAre(Found{"F1", {2}}));
}

}  // namespace
}  // namespace leasehold::drill
