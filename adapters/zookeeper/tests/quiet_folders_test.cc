#include "quiet_folders.h"

#include <gtest/gtest.h>

namespace leasehold::zookeeper {
namespace {

using Plan = QuietFolders::Plan;

class QuietFoldersTest : public ::testing::Test {
 protected:
  // Taken and given back by the way that is planned; the list has nobody else.
  void take(std::int64_t number) {
    switch (quiet.plan(mine, "/a")) {
      case Plan::watch_and_list:
        quiet.watched(mine, "/a");
        [[fallthrough]];
      case Plan::list:
        quiet.found_alone(mine, "/a", number);
        break;
      case Plan::go_by_number:
        EXPECT_TRUE(quiet.is_alone(mine, "/a", number));
    }
    quiet.gone(mine, "/a", number);
  }
  Plan plan() const { return quiet.plan(mine, "/a"); }

  // Only told apart.
  const Session* const mine = reinterpret_cast<const Session*>(this);
  const Session* const another = reinterpret_cast<const Session*>(&quiet);
  QuietFolders quiet;
};

TEST_F(QuietFoldersTest, TakenAgainAndAgainItIsNotListed) {
  EXPECT_EQ(plan(), Plan::list);
  take(5);
  EXPECT_EQ(plan(), Plan::watch_and_list);
  take(6);
  for (std::int64_t number = 7; number < 10; ++number) {
    EXPECT_EQ(plan(), Plan::go_by_number);
    take(number);
  }
}

TEST_F(QuietFoldersTest, WhoComesInBetweenIsLookedFor) {
  for (std::int64_t number = 5; number < 8; ++number) take(number);
  ASSERT_EQ(plan(), Plan::go_by_number);
  EXPECT_FALSE(quiet.is_alone(mine, "/a", 9)) << "8 is another's";
  quiet.found_alone(mine, "/a", 9);
  quiet.gone(mine, "/a", 9);
  EXPECT_EQ(plan(), Plan::list) << "others take this lock";
  take(10);
  EXPECT_EQ(plan(), Plan::go_by_number);
}

TEST_F(QuietFoldersTest, OwnNodeThatStandsIsCompany) {
  for (std::int64_t number = 5; number < 8; ++number) take(number);
  ASSERT_TRUE(quiet.is_alone(mine, "/a", 8));
  EXPECT_EQ(plan(), Plan::list);
  EXPECT_FALSE(quiet.is_alone(mine, "/a", 9)) << "8 stands there";
  quiet.found_others("/a");
  quiet.gone(mine, "/a", 8);
  EXPECT_EQ(plan(), Plan::list) << "9 stands there";
  EXPECT_FALSE(quiet.is_alone(mine, "/a", 10));
}

TEST_F(QuietFoldersTest, AnotherFolderOfThatNameIsListed) {
  for (std::int64_t number = 5; number < 8; ++number) take(number);
  quiet.touched(another, "/a");
  ASSERT_EQ(plan(), Plan::go_by_number);
  quiet.touched(mine, "/a");
  EXPECT_FALSE(quiet.is_alone(mine, "/a", 8));
  EXPECT_EQ(plan(), Plan::list);
}

TEST_F(QuietFoldersTest, WhatWasListedBeforeTheWatchProvesNothing) {
  for (std::int64_t number = 5; number < 8; ++number) {  // the watch did not come about
    quiet.found_alone(mine, "/a", number);
    quiet.gone(mine, "/a", number);
  }
  ASSERT_EQ(plan(), Plan::watch_and_list);
  quiet.watched(mine, "/a");  // perhaps a new folder; the list is on its way
  EXPECT_FALSE(quiet.is_alone(mine, "/a", 8));
  EXPECT_EQ(plan(), Plan::list);
}

TEST_F(QuietFoldersTest, AfterABreakAllIsFoundOutAnew) {
  for (std::int64_t number = 5; number < 8; ++number) take(number);
  quiet.broken(another);
  ASSERT_EQ(plan(), Plan::go_by_number);
  quiet.broken(mine);
  EXPECT_FALSE(quiet.is_alone(mine, "/a", 8));
  take(8);
  EXPECT_EQ(plan(), Plan::watch_and_list);
  take(9);
  EXPECT_EQ(plan(), Plan::go_by_number);
  quiet.over(mine);
  EXPECT_EQ(plan(), Plan::list);
  take(10);
  EXPECT_EQ(plan(), Plan::watch_and_list);
}

TEST_F(QuietFoldersTest, SessionsDoNotShareAWatch) {
  for (std::int64_t number = 5; number < 8; ++number) take(number);
  EXPECT_EQ(quiet.plan(another, "/a"), Plan::list);
  EXPECT_FALSE(quiet.is_alone(another, "/a", 8));
  quiet.found_alone(another, "/a", 8);
  quiet.gone(another, "/a", 8);
  EXPECT_FALSE(quiet.is_alone(another, "/a", 9));
  EXPECT_FALSE(quiet.is_alone(mine, "/a", 9)) << "8 came in between";
}

TEST_F(QuietFoldersTest, WatchesAreFew) {
  const auto folder = [](std::size_t i) { return "/" + std::to_string(i); };
  for (std::size_t i = 0; i <= QuietFolders::kMostWatches; ++i) {
    quiet.found_alone(mine, folder(i), 1);
    quiet.gone(mine, folder(i), 1);
    const Plan planned = quiet.plan(mine, folder(i));
    EXPECT_EQ(planned, i < QuietFolders::kMostWatches ? Plan::watch_and_list : Plan::list);
    if (planned == Plan::watch_and_list) quiet.watched(mine, folder(i));
  }
  quiet.touched(mine, folder(0));
  EXPECT_EQ(quiet.plan(mine, folder(QuietFolders::kMostWatches)), Plan::watch_and_list);
}

}  // namespace
}  // namespace leasehold::zookeeper
