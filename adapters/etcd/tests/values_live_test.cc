// Compare-and-set in a real etcd.
#include "leasehold/etcd/values.h"

#include <gmock/gmock.h>

#include <thread>

#include "etcd_under_test.h"
#include "testing/values_conformance.h"

namespace leasehold::testing {
namespace {

using etcd::Cell;
using etcd::Values;

class EtcdValueUnderTest final : public ValueUnderTest {
 public:
  std::unique_ptr<ValueUser> connect() override { return std::make_unique<CellUser<Cell>>(cell()); }
  std::string value() override {
    const std::string got = ctl({"get", "--print-value-only", key_});
    return got.substr(0, got.find('\n'));
  }
  void put(const std::string& value) override { ctl({"put", key_, value}); }

  Cell cell() const { return values_.at(key_).value(); }
  const std::string& key() const { return key_; }
  std::string ctl(std::vector<std::string> words) {
    return under_.server().ctl(std::move(words)).out;
  }

 private:
  EtcdUnderTest under_;
  const std::string key_ = under_.prefix() + "-data/stock";
  const Values values_ = Values::open(under_.url()).value();
};

INSTANTIATE_TEST_SUITE_P(Etcd, ValuesConformance, ::testing::Values(MakeValue([] {
                           return std::make_unique<EtcdValueUnderTest>();
                         })));

TEST(EtcdValues, KeyDeletedAndMadeAnewWithTheSameValueIsAConflict) {
  EtcdValueUnderTest stock;
  stock.put("7");
  const auto seen = stock.cell().read().value();
  stock.ctl({"del", stock.key()});
  EXPECT_FALSE(stock.cell().write(seen, "6").value());
  stock.put("7");
  EXPECT_FALSE(stock.cell().write(seen, "6").value());
  EXPECT_FALSE(stock.cell().write({}, "6").value()) << "it is there";
  EXPECT_EQ(stock.value(), "7");
}

TEST(EtcdValues, RefusalOfAFullServerIsDefinite) {
  const rig::EtcdServer server({.more = {"--quota-backend-bytes", "2000000"}});
  const Values values = Values::open("etcd://" + server.address()).value();
  const Cell cell = values.at("stock").value();
  ASSERT_TRUE(cell.write({}, "7").value());
  fill_up(server);
  const auto seen = cell.read();
  ASSERT_TRUE(seen);
  const auto full = cell.write(*seen, "6");
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code, ErrorCode::unavailable) << to_string(full.error());
  EXPECT_THAT(full.error().store_words, ::testing::HasSubstr("database space exceeded"));
  EXPECT_EQ(cell.read().value().value, "7");
}

// The server applies what fills it up, and says no to it. With many at once that is any of them.
TEST(EtcdValues, WhatAFullServerRefusedIsNotThere) {
  const rig::EtcdServer server({.more = {"--quota-backend-bytes", "2000000"}});
  const Values values = Values::open("etcd://" + server.address()).value();
  const std::string much(200'000, 'x');
  std::vector<std::thread> threads;
  for (int i = 0; i < 16; ++i) {
    threads.emplace_back([&, i] {
      const Cell cell = values.at("key " + std::to_string(i)).value();
      const auto written = cell.write({}, much);
      const bool there = cell.read().value().value.has_value();
      if (written) {
        EXPECT_TRUE(there);
      } else if (written.error().code == ErrorCode::unavailable) {
        EXPECT_FALSE(there) << to_string(written.error());
      } else {
        EXPECT_EQ(written.error().code, ErrorCode::outcome_unknown);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(EtcdValues, LeaseOfTheKeyStays) {
  EtcdValueUnderTest stock;
  const std::string granted =
      stock.ctl({"lease", "grant", "600"});  // "lease <id> granted with TTL(600s)"
  const std::string lease = granted.substr(6, granted.find(' ', 6) - 6);
  stock.ctl({"put", stock.key(), "7", "--lease=" + lease});
  ASSERT_TRUE(stock.connect()->change([](const auto&) -> Result<std::string> { return "6"; }));
  EXPECT_EQ(stock.value(), "6");
  stock.ctl({"lease", "revoke", lease});
  EXPECT_EQ(stock.value(), "") << "it went with its lease";
}

TEST(EtcdValues, WrongInputIsTold) {
  EtcdUnderTest under;
  EXPECT_EQ(Values::open(under.url()).value().at("").error().code, ErrorCode::invalid);
  EXPECT_EQ(Values::open("redis://localhost").error().code, ErrorCode::invalid);
  EXPECT_EQ(Values::open("etcd://127.0.0.1:1").error().code, ErrorCode::unavailable);
}

}  // namespace
}  // namespace leasehold::testing
