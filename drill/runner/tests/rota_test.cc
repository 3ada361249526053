#include "../rota.h"

#include <gmock/gmock.h>

#include <future>
#include <map>
#include <memory>
#include <optional>

#include "../ledger.h"
#include "leasehold/client.h"
#include "rig/temp_folder.h"
#include "testing/memory_store.h"

namespace leasehold::drill {
namespace {

using namespace std::chrono_literals;

class RotaTest : public ::testing::Test {
 protected:
  // As the pattern does it.
  std::int64_t gain(int partition) {
    const LockName lock = partition_lock(LockName::parse("orders").value(), partition).value();
    const std::int64_t asked = now();
    leases_.emplace(partition, client_.acquire_fenced(lock).value());
    const FencedLease& lease = leases_.at(partition);
    rota_.gained({partition, lease, lease.token()});
    return asked;
  }
  void give_up(int partition) {
    rota_.give_up(partition);
    leases_.erase(partition);
  }
  std::optional<int> turn() {
    const auto turn = rota_.take_up(0ms).value();
    rota_.put_down();
    return turn ? std::optional(turn->partition) : std::nullopt;
  }
  History written() const {
    HistoryReader reader;
    EXPECT_TRUE(reader.read(folder_.file("history")));
    return reader.take();
  }

  rig::TempFolder folder_;
  testing::MemoryStore* store_ = new testing::MemoryStore;
  Client client_{std::unique_ptr<Store>(store_)};
  std::map<int, FencedLease> leases_;
  Rota rota_{Diary(HistoryWriter::open(folder_.file("history"), "worker", "boot").value())};
};

TEST_F(RotaTest, WhatIsNewComesFirstThenWhatHasWaitedLongest) {
  EXPECT_EQ(turn(), std::nullopt);
  gain(0);
  EXPECT_EQ(turn(), 0);
  gain(3);
  EXPECT_EQ(turn(), 3);
  EXPECT_EQ(turn(), 0);
  EXPECT_EQ(turn(), 3);
  give_up(0);
  EXPECT_EQ(turn(), 3);
}

TEST_F(RotaTest, EachTurnOfAPartitionHasTheNextSequenceNumber) {
  gain(0);
  gain(1);
  for (const std::uint32_t number : {1u, 1u, 2u, 2u}) {
    EXPECT_EQ(rota_.take_up(0ms).value()->grant.pass.sequence, number);
    rota_.put_down();
  }
}

TEST_F(RotaTest, WaitsForWhatIsNew) {
  auto taken = std::async(std::launch::async, [this] { return rota_.take_up(60s).value(); });
  gain(7);
  EXPECT_EQ(taken.get()->partition, 7);
}

TEST_F(RotaTest, NothingIsGivenUpWhileItIsInHand) {
  gain(0);
  ASSERT_TRUE(rota_.take_up(0ms).value());
  auto given_up = std::async(std::launch::async, [this] { give_up(0); });
  EXPECT_EQ(given_up.wait_for(30ms), std::future_status::timeout);
  rota_.put_down();
  given_up.get();
  EXPECT_EQ(turn(), std::nullopt);
}

TEST_F(RotaTest, NoTurnBeginsOnceTheLeaseIsLost) {
  gain(0);
  store_->end(leases_.at(0).request());
  EXPECT_EQ(turn(), std::nullopt);
}

// Who is frozen between its grant and gained() must not seem to have asked after its successor.
TEST_F(RotaTest, IsSaidToHaveAskedBeforeItDid) {
  const std::int64_t first = gain(0);
  give_up(0);
  const std::int64_t second = gain(1);
  const History history = written();
  const auto& records = history.records();
  ASSERT_EQ(records.size(), 5u);
  EXPECT_LE(records[0].time, first);
  EXPECT_EQ(records[2].operation, Operation::release);
  EXPECT_EQ(records[3].kind, Kind::invoke);
  EXPECT_LE(records[3].time, second);
  EXPECT_EQ(history.lock_name(records[3].lock), "orders/1");
}

}  // namespace
}  // namespace leasehold::drill
