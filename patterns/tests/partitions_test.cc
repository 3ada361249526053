// How partitions are spread. What their owners do is in testing/partitions_conformance.cc.
#include "leasehold/partitions.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>

namespace leasehold {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::IsEmpty;
using ::testing::Le;

std::vector<std::string> members(int count) {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.push_back("worker-" + std::to_string(i));
  return names;
}

std::vector<std::string> owners(const std::vector<std::string>& members, int count) {
  std::vector<std::string> names;
  for (const std::size_t owner : spread(members, count)) names.push_back(members[owner]);
  return names;
}

TEST(SpreadTest, WhoJoinsOrLeavesMovesOnlyItsOwn) {
  constexpr int kPartitions = 1000;
  for (int size = 1; size < 20; ++size) {
    const auto fewer = owners(members(size), kPartitions);
    const auto more = owners(members(size + 1), kPartitions);
    for (std::size_t i = 0; i < fewer.size(); ++i) {
      if (more[i] != members(size + 1).back()) EXPECT_EQ(more[i], fewer[i]) << i;
    }
  }
}

TEST(SpreadTest, EachMemberHasAboutAsMany) {
  std::map<std::string, int> shares;
  for (const std::string& owner : owners(members(20), 1000)) ++shares[owner];
  ASSERT_EQ(shares.size(), 20U);
  for (const auto& [member, share] : shares) EXPECT_THAT(share, AllOf(Ge(25), Le(75))) << member;
}

TEST(SpreadTest, OrderOfTheMembersDoesNotMatter) {
  auto reversed = members(7);
  std::reverse(reversed.begin(), reversed.end());
  EXPECT_EQ(owners(members(7), 100), owners(reversed, 100));
}

TEST(SpreadTest, NobodyOwnsWithoutMembers) {
  EXPECT_THAT(spread({}, 10), IsEmpty());
}

// Programs of other versions and languages count on them.
TEST(SpreadTest, NumbersStayAsTheyAre) {
  const auto of = [](std::string_view key) { return partition_of(key, 64); };
  EXPECT_THAT((std::vector{of(""), of("order 1"), of("order 2"), of("\xff")}),
              ElementsAre(27, 20, 49, 13));
  EXPECT_THAT(owners(members(3), 6),
              ElementsAre("worker-1", "worker-2", "worker-0", "worker-0", "worker-0", "worker-1"));
}

TEST(SpreadTest, KeyHasOnePartitionOfOne) {
  EXPECT_EQ(partition_of("order", 1), 0);
  EXPECT_EQ(partition_of("order", 0), 0);
}

}  // namespace
}  // namespace leasehold
