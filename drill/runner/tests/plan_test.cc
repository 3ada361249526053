#include "../plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../site.h"
#include "leasehold/partitions.h"

namespace leasehold::drill {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

TEST(PlanTest, EveryFaultHasANameOfItsOwn) {
  for (const Fault fault : all_faults()) EXPECT_EQ(parse_fault(to_string(fault)), fault);
  EXPECT_EQ(all_faults().size(), 9u);
  EXPECT_FALSE(parse_fault("paus"));
  EXPECT_FALSE(parse_fault(""));
}

TEST(PlanTest, FaultsOfServersNeedOne) {
  for (const Fault fault : all_faults()) {
    EXPECT_EQ(why_impossible("sqlite", fault).has_value(), !is_of_holder(fault))
        << to_string(fault);
  }
  EXPECT_TRUE(why_impossible("etcd", Fault::clock));
  EXPECT_TRUE(why_impossible("zookeeper", Fault::clock));
  EXPECT_TRUE(why_impossible("redlock", Fault::failover));
  EXPECT_FALSE(why_impossible("postgres", Fault::failover));
  EXPECT_FALSE(why_impossible("redis", Fault::clock));
}

std::vector<Mode> modes_of(Use use, unsigned workers) {
  Plan plan;
  plan.use = use;
  plan.workers = workers;
  std::vector<Mode> modes;
  for (unsigned i = 0; i < workers; ++i) modes.push_back(mode_of_worker(plan, i));
  return modes;
}

std::vector<std::string> resources_of(Use use, unsigned workers) {
  Plan plan;
  plan.use = use;
  plan.workers = workers;
  return resource_names(plan, "a");
}

TEST(PlanTest, TwoWritersAtLeastAndSomeReadersShare) {
  const Mode writer;
  const Mode reader = Mode::shared();
  EXPECT_THAT(modes_of(Use::exclusive, 2), ElementsAre(writer, writer));
  EXPECT_THAT(modes_of(Use::shared, 3), ElementsAre(writer, writer, reader));
  EXPECT_THAT(modes_of(Use::shared, 4), ElementsAre(writer, writer, reader, reader));
  EXPECT_THAT(modes_of(Use::shared, 5), ElementsAre(writer, writer, writer, reader, reader));
}

TEST(PlanTest, OneWorkerMoreThanThereArePermits) {
  EXPECT_THAT(modes_of(Use::permits, 3), Each(Mode::permit_of(2)));
  EXPECT_THAT(modes_of(Use::permits, 64), Each(Mode::permit_of(63)));
}

TEST(PlanTest, EachSlotIsAResourceOfItsOwn) {
  EXPECT_EQ(resource_name("gpu", Slot{0}), "gpu#0");
  EXPECT_EQ(resource_name("gpu", std::nullopt), "gpu");
  EXPECT_THAT(resources_of(Use::permits, 3), ElementsAre("a#0", "a#1"));
}

TEST(PlanTest, EachPartitionIsAResourceOfItsOwn) {
  EXPECT_THAT(resources_of(Use::partitions, 2), ElementsAre("a/0", "a/1", "a/2", "a/3"));
  EXPECT_EQ(partition_lock(LockName::parse("a").value(), 3)->str(), "a/3");
}

TEST(PlanTest, OtherLocksHaveOneResource) {
  for (const Use use : {Use::exclusive, Use::shared, Use::election}) {
    EXPECT_THAT(resources_of(use, 5), ElementsAre("a"));
  }
}

}  // namespace
}  // namespace leasehold::drill
