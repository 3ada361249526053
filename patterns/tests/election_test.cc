// An election without a server; the conformance suite is in testing/.
#include "leasehold/election.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>

#include "testing/faulty_store.h"
#include "testing/memory_store.h"
#include "testing/results.h"

namespace leasehold {
namespace {

using namespace std::chrono_literals;
using leasehold::testing::bad;
using leasehold::testing::Fault;
using leasehold::testing::Faults;
using leasehold::testing::good;
using leasehold::testing::MemoryStore;

class ElectionTest : public ::testing::Test {
 protected:
  Election election(Guarantee guarantee = Guarantee::correctness) {
    return Election(
        Client(leasehold::testing::with_faults(std::make_unique<MemoryStore>(guarantee), faults)),
        LockName::parse("leader").value());
  }
  std::shared_ptr<Faults> faults = std::make_shared<Faults>();
};

TEST_F(ElectionTest, ALeaderHasATokenWhereTheStoreHasSafeOnes) {
  EXPECT_TRUE(election().campaign().value().token());
  EXPECT_FALSE(election(Guarantee::efficiency).campaign().value().token());
}

TEST_F(ElectionTest, ACandidateAsksAStoreThatIsAwayAgain) {
  faults->next(testing::Operation::acquire, Fault::refuse, 3);
  Election mine = election();
  EXPECT_TRUE(good(mine.campaign()));
  EXPECT_EQ(faults->calls(testing::Operation::acquire), 4);
}

TEST_F(ElectionTest, ACandidateOfLittlePatienceIsToldWhy) {
  faults->always(testing::Operation::acquire, Fault::refuse);
  Election mine = election();
  EXPECT_TRUE(bad(mine.campaign({.wait = 0ms}), ErrorCode::unavailable));
  EXPECT_TRUE(bad(mine.campaign({.wait = -1ms}), ErrorCode::invalid));
  EXPECT_TRUE(bad(mine.campaign({.note = "a\nb"}), ErrorCode::invalid));
  EXPECT_TRUE(bad(mine.campaign({.note = "here"}), ErrorCode::unsupported)) << "it has no notes";
}

TEST_F(ElectionTest, AStopEndsTheWaitForAStoreThatIsAway) {
  faults->always(testing::Operation::acquire, Fault::refuse);
  Election mine = election();
  std::stop_source stop;
  auto campaign =
      std::async(std::launch::async, [&] { return mine.campaign({.stop = stop.get_token()}); });
  faults->wait_for_calls(testing::Operation::acquire, 2);
  stop.request_stop();
  EXPECT_TRUE(bad(campaign.get(), ErrorCode::cancelled));
}

TEST_F(ElectionTest, ThatTheLeaderCannotBeSeenIsTold) {
  faults->always(testing::Operation::inspect, Fault::refuse);
  Election mine = election();
  std::promise<bool> told;
  const auto watch = mine.observe(
      [&](const Result<std::optional<Leader>>& now) { told.set_value(now.has_value()); });
  ASSERT_TRUE(watch);
  EXPECT_FALSE(told.get_future().get());
  EXPECT_TRUE(bad(mine.leader(), ErrorCode::unavailable));
  EXPECT_TRUE(bad(mine.observe(nullptr), ErrorCode::invalid));
}

}  // namespace
}  // namespace leasehold
