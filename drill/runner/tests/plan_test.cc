#include "../plan.h"

#include <gtest/gtest.h>

#include "../site.h"

namespace leasehold::drill {
namespace {

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

}  // namespace
}  // namespace leasehold::drill
