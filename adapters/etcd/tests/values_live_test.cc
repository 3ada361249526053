// Compare-and-set in a real etcd.
#include "leasehold/etcd/values.h"

#include <gmock/gmock.h>

#include <atomic>
#include <latch>
#include <thread>
#include <vector>

#include "etcd_under_test.h"

namespace leasehold::testing {
namespace {

using namespace std::chrono_literals;
using etcd::Cell;
using etcd::Values;

class EtcdValues : public ::testing::Test {
 protected:
  Cell stock() { return values_.at(key_).value(); }
  std::string ctl(std::vector<std::string> words) {
    return under_.server().ctl(std::move(words)).out;
  }
  std::string value() {
    const std::string got = ctl({"get", "--print-value-only", key_});
    return got.substr(0, got.find('\n'));
  }

  EtcdUnderTest under_;
  const std::string key_ = under_.prefix() + "-data/stock";
  const Values values_ = Values::open(under_.url()).value();
};

Result<std::string> one_less(const std::optional<std::string>& seen) {
  return std::to_string(std::stoi(seen.value_or("100")) - 1);
}

TEST_F(EtcdValues, MakesAndChangesAPlainKey) {
  EXPECT_EQ(compare_and_set(stock(), one_less).value().value, "99");
  EXPECT_EQ(compare_and_set(stock(), one_less).value().value, "98");
  EXPECT_EQ(value(), "98");
}

TEST_F(EtcdValues, WriteOfAnotherProgramInBetweenIsNotLost) {
  int calls = 0;
  const auto changed =
      compare_and_set(stock(), [&](const std::optional<std::string>& seen) -> Result<std::string> {
        if (++calls == 1) ctl({"put", key_, "50"});
        return one_less(seen);
      });
  ASSERT_TRUE(changed);
  EXPECT_EQ(changed->conflicts, 1);
  EXPECT_EQ(value(), "49");
}

TEST_F(EtcdValues, KeyDeletedAndMadeAnewWithTheSameValueIsAConflict) {
  ctl({"put", key_, "7"});
  const auto seen = stock().read().value();
  ctl({"del", key_});
  EXPECT_FALSE(stock().write(seen, "6").value());
  ctl({"put", key_, "7"});
  EXPECT_FALSE(stock().write(seen, "6").value());
  EXPECT_FALSE(stock().write({}, "6").value()) << "it is there";
  EXPECT_EQ(value(), "7");
}

TEST_F(EtcdValues, LeaseOfTheKeyStays) {
  const std::string granted =
      ctl({"lease", "grant", "600"});  // "lease <id> granted with TTL(600s)"
  const std::string lease = granted.substr(6, granted.find(' ', 6) - 6);
  ctl({"put", key_, "7", "--lease=" + lease});
  ASSERT_TRUE(compare_and_set(stock(), one_less));
  ctl({"lease", "revoke", lease});
  EXPECT_EQ(value(), "") << "it went with its lease";
}

TEST_F(EtcdValues, RacingThreadsLoseNothing) {
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

TEST_F(EtcdValues, WrongInputIsTold) {
  EXPECT_EQ(values_.at("").error().code, ErrorCode::invalid);
  EXPECT_EQ(Values::open("redis://localhost").error().code, ErrorCode::invalid);
  EXPECT_EQ(Values::open("etcd://127.0.0.1:1").error().code, ErrorCode::unavailable);
}

}  // namespace
}  // namespace leasehold::testing
