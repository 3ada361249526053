// Compare-and-set in a real ZooKeeper.
#include "leasehold/zookeeper/values.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "adapters/zookeeper/rig/server.h"
#include "testing/values_conformance.h"

namespace leasehold::testing {
namespace {

using zookeeper::Cell;
using zookeeper::Values;

rig::ZookeeperServer& server() {
  static rig::ZookeeperServer shared;
  return shared;
}

Values values() {
  return Values::open("zookeeper://" + server().address()).value();
}

// A path of this test's own.
std::string path() {
  const ::testing::TestInfo* test = ::testing::UnitTest::GetInstance()->current_test_info();
  std::string name = test->name();
  std::replace(name.begin(), name.end(), '/', '-');
  return "/" + name;
}

class ZookeeperValueUnderTest final : public ValueUnderTest {
 public:
  std::unique_ptr<ValueUser> connect() override {
    return std::make_unique<CellUser<Cell>>(values().at(path()).value());
  }
  std::string value() override { return cell_.read().value().value.value_or("none"); }
  void put(const std::string& value) override {
    EXPECT_TRUE(cell_.write(cell_.read().value(), value).value());
  }

 private:
  const Cell cell_ = values().at(path()).value();
};

INSTANTIATE_TEST_SUITE_P(Zookeeper, ValuesConformance, ::testing::Values(MakeValue([] {
                           return std::make_unique<ZookeeperValueUnderTest>();
                         })));

TEST(ZookeeperValues, VersionIsTheNodesOwn) {
  const Cell stock = values().at(path()).value();
  ASSERT_TRUE(stock.write({}, "a").value());
  ASSERT_TRUE(stock.write(stock.read().value(), "b").value());
  EXPECT_EQ(stock.read()->version, 1);
}

TEST(ZookeeperValues, WrongInputIsTold) {
  const Values here = values();
  EXPECT_EQ(here.at("stock").error().code, ErrorCode::invalid);
  EXPECT_EQ(here.at("/zookeeper/quota").error().code, ErrorCode::invalid);
  EXPECT_EQ(here.at("/no/such").value().write({}, "x").error().code, ErrorCode::invalid);
  const Cell stock = here.at(path()).value();
  EXPECT_EQ(stock.write({}, std::string(1'000'001, 'x')).error().code, ErrorCode::invalid);
  EXPECT_EQ(Values::open("redis://localhost").error().code, ErrorCode::invalid);
  EXPECT_EQ(stock.read()->value, std::nullopt);
}

}  // namespace
}  // namespace leasehold::testing
