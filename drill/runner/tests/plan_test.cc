#include "../plan.h"

#include <gtest/gtest.h>

#include "../store_servers.h"

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
    const bool of_holder = fault == Fault::pause || fault == Fault::kill_holder;
    EXPECT_EQ(why_not("sqlite", fault).has_value(), !of_holder) << to_string(fault);
  }
  EXPECT_TRUE(why_not("etcd", Fault::clock));
  EXPECT_TRUE(why_not("zookeeper", Fault::clock));
  EXPECT_TRUE(why_not("redlock", Fault::failover));
  EXPECT_FALSE(why_not("postgres", Fault::failover));
  EXPECT_FALSE(why_not("redis", Fault::clock));
}

}  // namespace
}  // namespace leasehold::drill
