#include "leasehold/drill/try_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "story.h"

namespace leasehold::drill {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TryLockTest : public ::testing::Test {
 protected:
  Story& story() { return story_; }
  void busy(int request) { story_.client(request, Kind::fail, Operation::acquire); }
  void unknown(int request) { story_.client(request, Kind::unknown, Operation::acquire); }
  void asks_back(int request) { story_.client(request, Kind::invoke, Operation::release); }
  void gave_back(int request) { story_.client(request, Kind::ok, Operation::release); }
  void too_late(int request) { story_.client(request, Kind::fail, Operation::release); }

  TryLockVerdict verdict(const TryLockLimits& limits = {}) {
    return check_try_lock(story_.history, story_.history.lock("a"), limits);
  }

 private:
  Story story_;
};

TEST_F(TryLockTest, TurnsAreLinearizable) {
  for (int i = 1; i <= 5; ++i) {
    story().asks(i).gets(i, i, 1'000'000);
    asks_back(i);
    gave_back(i);
  }
  const TryLockVerdict found = verdict();
  EXPECT_EQ(found.answer, Answer::yes) << found.sentence;
  EXPECT_EQ(found.operations, 10u);
}

TEST_F(TryLockTest, TwoHoldersAreNot) {
  story().asks(1).gets(1, 1, 1'000'000).asks(2).gets(2, 2, 1'000'000);
  const TryLockVerdict found = verdict();
  EXPECT_EQ(found.answer, Answer::no);
  EXPECT_THAT(found.records, ElementsAre(2, 3));
}

TEST_F(TryLockTest, SecondHolderIsRightOnceTheFirstsDeadlineIsOver) {
  story().at(1).asks(1).gets(1, 1, 500).at(400).asks(2).at(501).gets(2, 2, 1500);
  EXPECT_EQ(verdict().answer, Answer::yes);
}

TEST_F(TryLockTest, RenewalMovesTheDeadline) {
  story().at(1).asks(1).gets(1, 1, 500).client(1, Kind::ok, Operation::renew, 0, 900);
  story().at(400).asks(2).at(501).gets(2, 2, 1500);
  EXPECT_EQ(verdict().answer, Answer::no);
}

TEST_F(TryLockTest, WhatWasAcceptedBeforeItWasAskedForIsNoAnswer) {
  story().read(1, 1, 0).asks(1);
  EXPECT_EQ(verdict().answer, Answer::yes);
}

TEST_F(TryLockTest, BusyNeedsAHolder) {
  story().asks(1);
  busy(1);
  EXPECT_EQ(verdict().answer, Answer::no);
}

TEST_F(TryLockTest, BusyBesideAnOverlappingHolderIsRight) {
  story().asks(1).asks(2);
  busy(2);
  story().gets(1, 1, 1'000'000);
  EXPECT_EQ(verdict().answer, Answer::yes);
}

TEST_F(TryLockTest, BusyAfterTheReleaseWasDoneIsNot) {
  story().asks(1).gets(1, 1, 1'000'000);
  asks_back(1);
  gave_back(1);
  story().asks(2);
  busy(2);
  EXPECT_EQ(verdict().answer, Answer::no);
}

TEST_F(TryLockTest, ReleaseOfWhatAnotherTookOverIsNotDone) {
  story().at(1).asks(1).gets(1, 1, 500).at(600).asks(2).gets(2, 2, 5000);
  asks_back(1);
  gave_back(1);
  EXPECT_EQ(verdict().answer, Answer::no);
}

TEST_F(TryLockTest, ReleaseThatIsTooLateNeedsAnEndedLease) {
  story().at(1).asks(1).gets(1, 1, 500).at(100);
  asks_back(1);
  too_late(1);
  EXPECT_EQ(verdict().answer, Answer::no);
}

TEST_F(TryLockTest, ReleaseThatIsTooLateAfterTheDeadlineIsRight) {
  story().at(1).asks(1).gets(1, 1, 500).at(501);
  asks_back(1);
  too_late(1);
  EXPECT_EQ(verdict().answer, Answer::yes);
}

TEST_F(TryLockTest, UnknownAcquireExplainsBusyMuchLater) {
  story().asks(1);
  unknown(1);
  story().asks(2).gets(2, 2, 1'000'000);
  asks_back(2);
  gave_back(2);
  story().asks(3);
  busy(3);
  EXPECT_EQ(verdict().answer, Answer::yes);
}

TEST_F(TryLockTest, UnknownAcquireTakesEffectOnlyOnce) {
  story().at(1).asks(1);
  unknown(1);
  story().asks(2);
  busy(2);
  story().asks(3).gets(3, 3, 1'000'000);
  asks_back(3);
  gave_back(3);
  story().asks(4);
  busy(4);
  EXPECT_EQ(verdict().answer, Answer::no);
}

TEST_F(TryLockTest, UnknownAcquireWhoseTokenWasAcceptedWasDone) {
  story().asks(1);
  unknown(1);
  story().read(1, 1, 0).asks(2).gets(2, 2, 1'000'000);
  asks_back(2);
  gave_back(2);
  story().asks(3);
  busy(3);  // 1 had it before: nobody is left
  EXPECT_EQ(verdict().answer, Answer::no);
}

TEST_F(TryLockTest, BeyondTheLimitsTheAnswerIsUnknownNeverYes) {
  for (int i = 1; i <= 11; ++i) {
    story().asks(i);
    unknown(i);
  }
  EXPECT_EQ(verdict().answer, Answer::unknown);
  EXPECT_THAT(verdict().sentence, HasSubstr("more than 10 operations with an unknown outcome"));
  EXPECT_EQ(verdict({.unknown_at_once = 11}).answer, Answer::yes);
}

TEST_F(TryLockTest, LongWindowsAreUnknownAndQuietPointsCutThem) {
  story().asks(1).gets(1, 1, 1'000'000);
  for (int i = 2; i <= 600; ++i) {
    story().asks(i);
    busy(i);
  }
  EXPECT_EQ(verdict({.operations_in_a_window = 3}).answer, Answer::yes);
  asks_back(1);  // under way from here on
  for (int i = 601; i <= 603; ++i) {
    story().asks(i);
    busy(i);
  }
  gave_back(1);
  EXPECT_EQ(verdict({.operations_in_a_window = 3}).answer, Answer::unknown);
  EXPECT_EQ(verdict().answer, Answer::yes);
}

TEST_F(TryLockTest, TooManyStatesAreUnknown) {
  for (int i = 1; i <= 8; ++i) story().asks(i);
  story().gets(8, 8, 1'000'000);
  for (int i = 1; i <= 7; ++i) busy(i);
  EXPECT_EQ(verdict({.states = 10}).answer, Answer::unknown);
  EXPECT_EQ(verdict().answer, Answer::yes);
}

TEST_F(TryLockTest, SixtyFiveAtOnceAreUnknown) {
  for (int i = 1; i <= 65; ++i) story().asks(i);
  for (int i = 1; i <= 65; ++i) busy(i);
  EXPECT_EQ(verdict().answer, Answer::unknown);
}

}  // namespace
}  // namespace leasehold::drill
