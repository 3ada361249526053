// Compare-and-set in a real ZooKeeper.
#include "leasehold/zookeeper/values.h"

#include <gmock/gmock.h>

#include <atomic>
#include <latch>
#include <thread>
#include <vector>

#include "testing/servers/zookeeper.h"

namespace leasehold::zookeeper {
namespace {

using namespace std::chrono_literals;

leasehold::testing::ZookeeperServer& server() {
  static leasehold::testing::ZookeeperServer shared;
  return shared;
}

std::string url() {
  return "zookeeper://" + server().address();
}

class ZookeeperValues : public ::testing::Test {
 protected:
  Cell stock() const { return values_.at(path_).value(); }
  std::string value() const { return stock().read().value().value.value_or("none"); }

  const Values values_ = Values::open(url()).value();
  const std::string path_ =
      std::string("/") + ::testing::UnitTest::GetInstance()->current_test_info()->name();
};

Result<std::string> one_less(const std::optional<std::string>& seen) {
  return std::to_string(std::stoi(seen.value_or("100")) - 1);
}

TEST_F(ZookeeperValues, MakesAndChangesANode) {
  EXPECT_EQ(compare_and_set(stock(), one_less).value().value, "99");
  EXPECT_EQ(compare_and_set(stock(), one_less).value().value, "98");
  EXPECT_EQ(value(), "98");
  EXPECT_EQ(stock().read()->version, 1);
}

TEST_F(ZookeeperValues, WriteInBetweenIsNotLost) {
  const Values other = Values::open(url()).value();
  for (const std::string expected : {"98", "96"}) {  // while it is created, and while it is set
    int calls = 0;
    const auto changed = compare_and_set(
        stock(), [&](const std::optional<std::string>& seen) -> Result<std::string> {
          if (++calls == 1) {
            EXPECT_TRUE(compare_and_set(other.at(path_).value(), one_less));
          }
          return one_less(seen);
        });
    ASSERT_TRUE(changed);
    EXPECT_EQ(changed->conflicts, 1);
    EXPECT_EQ(value(), expected);
  }
}

TEST_F(ZookeeperValues, RacingThreadsLoseNothing) {
  std::latch start(4);
  std::atomic<int> done = 0;
  {
    std::vector<std::jthread> workers;
    for (int i = 0; i < 4; ++i) {
      workers.emplace_back([&] {
        start.arrive_and_wait();
        for (int n = 0; n < 10; ++n) {
          if (compare_and_set(stock(), one_less, {.attempts = 10'000, .wait = 60s})) ++done;
        }
      });
    }
  }
  EXPECT_EQ(done, 40);
  EXPECT_EQ(value(), "60");
}

TEST_F(ZookeeperValues, WrongInputIsTold) {
  EXPECT_EQ(values_.at("stock").error().code, ErrorCode::invalid);
  EXPECT_EQ(values_.at("/zookeeper/quota").error().code, ErrorCode::invalid);
  EXPECT_EQ(compare_and_set(values_.at("/no/such").value(), one_less).error().code,
            ErrorCode::invalid);
  EXPECT_EQ(stock().write({}, std::string(1'000'001, 'x')).error().code, ErrorCode::invalid);
  EXPECT_EQ(Values::open("redis://localhost").error().code, ErrorCode::invalid);
  EXPECT_EQ(value(), "none");
}

}  // namespace
}  // namespace leasehold::zookeeper
