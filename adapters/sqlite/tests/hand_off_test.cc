// A released lock reaches the next waiter by a message, not by the waiter's timer.
#include <gtest/gtest.h>

#include <filesystem>
#include <future>
#include <thread>

#include "leasehold/client.h"
#include "leasehold/sqlite/adapter.h"
#include "rig/temp_folder.h"
#include "testing/faulty_store.h"
#include "testing/raw_store.h"
#include "testing/worker.h"

namespace leasehold::testing {
namespace {

using namespace std::chrono_literals;

class HandOffTest : public ::testing::Test {
 protected:
  std::unique_ptr<Store> open() {
    return std::move(sqlite::adapters().front().open_store(Url::parse(url).value(), {}).value());
  }
  std::size_t waiters(Client& client) {
    return client.inspect(LockName::parse("job").value())->waiters.size();
  }
  rig::TempFolder folder;
  std::string url = "sqlite:" + folder.file("locks.db");
};

TEST_F(HandOffTest, ReleaseWakesTheNextWaiter) {
  constexpr Millis sooner_than_its_timer = 1500ms;  // a waiter looks by itself after two seconds
  Client holder(open());
  int woken = 0;
  for (int round = 0; round < 5; ++round) {
    auto lease = holder.acquire("job", {.ttl = 24h, .wait = 30s});
    ASSERT_TRUE(lease);
    const auto faults = std::make_shared<Faults>();
    Client waiter(with_faults(open(), faults));
    auto waiting = std::async(
        std::launch::async, [&] { return waiter.acquire("job", {.wait = sooner_than_its_timer}); });
    while (waiters(holder) == 0) std::this_thread::sleep_for(1ms);
    ASSERT_TRUE(lease->release());
    woken += waiting.get().has_value();
    EXPECT_LE(faults->calls(Operation::acquire), 3) << "it polled";
  }
  EXPECT_GE(woken, 3) << "a machine may stand still for longer than the timer, but not so often";
}

TEST_F(HandOffTest, ReleaseWakesOneOfMany) {
  Client holder(open());
  auto lease = holder.acquire("job", {.ttl = 24h});
  ASSERT_TRUE(lease);
  struct Waiting {
    std::shared_ptr<Faults> faults = std::make_shared<Faults>();
    std::unique_ptr<Client> client;
    std::future<Result<Lease>> result;
  };
  std::vector<Waiting> all(10);
  for (std::size_t i = 0; i < all.size(); ++i) {
    Waiting& it = all[i];
    it.client = std::make_unique<Client>(with_faults(open(), it.faults));
    it.result =
        std::async(std::launch::async, [&it] { return it.client->acquire("job", {.wait = 60s}); });
    while (waiters(holder) != i + 1) std::this_thread::sleep_for(1ms);
  }
  std::vector<int> before;
  for (const Waiting& it : all) before.push_back(it.faults->calls(Operation::acquire));
  ASSERT_TRUE(lease->release());
  auto first = all.front().result.get();
  ASSERT_TRUE(first) << to_string(first.error());
  int woken = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    woken += all[i].faults->calls(Operation::acquire) - before[i];
  }
  // A waiter whose timer came just then asks too; a herd would be ten or more.
  EXPECT_LE(woken, 4);
  ASSERT_TRUE(first->release());
  for (std::size_t i = 1; i < all.size(); ++i) ASSERT_TRUE(all[i].result.get()->release());
}

TEST_F(HandOffTest, LongPathsHaveSocketsToo) {
  const std::string deep = folder.file(std::string(90, 'a') + "/" + std::string(90, 'b'));
  std::filesystem::create_directories(deep);
  url = "sqlite:" + deep + "/locks.db";
  Client holder(open());
  bool woken = false;  // before its timer does it, unless the machine stands still for so long
  for (int attempt = 0; attempt < 5 && !woken; ++attempt) {
    auto lease = holder.acquire("job", {.ttl = 24h, .wait = 30s});
    ASSERT_TRUE(lease);
    auto waiting = std::async(std::launch::async,
                              [&] { return Client(open()).acquire("job", {.wait = 1500ms}); });
    while (waiters(holder) == 0) std::this_thread::sleep_for(1ms);
    ASSERT_TRUE(lease->release());
    woken = waiting.get().has_value();
  }
  EXPECT_TRUE(woken);
}

TEST_F(HandOffTest, WaiterKeepsItsPlaceWhenItsSocketIsCleanedAway) {
  Client holder(open());
  auto lease = holder.acquire("job", {.ttl = 24h});
  ASSERT_TRUE(lease);
  Client first(open());
  Client second(open());
  auto one = std::async(std::launch::async, [&] { return first.acquire("job", {.wait = 30s}); });
  while (waiters(holder) != 1) std::this_thread::sleep_for(1ms);
  std::filesystem::remove_all(folder.file("locks.db-wake"));
  auto two = std::async(std::launch::async, [&] { return second.acquire("job", {.wait = 30s}); });
  while (waiters(holder) != 2) std::this_thread::sleep_for(1ms);
  ASSERT_TRUE(lease->release());
  auto got = one.get();
  ASSERT_TRUE(got) << to_string(got.error());
  EXPECT_EQ(two.wait_for(0s), std::future_status::timeout) << "overtaken";
  ASSERT_TRUE(got->release());
  EXPECT_TRUE(two.get());
}

TEST_F(HandOffTest, SocketThatWasCleanedAwayIsMadeAnew) {
  Client holder(open());
  auto lease = holder.acquire("job", {.ttl = 24h});
  ASSERT_TRUE(lease);
  Client waiter(open());
  auto waiting =
      std::async(std::launch::async, [&] { return waiter.acquire("job", {.wait = 1min}); });
  while (waiters(holder) != 1) std::this_thread::sleep_for(1ms);
  const std::filesystem::path sockets = folder.file("locks.db-wake");
  std::filesystem::remove_all(sockets);
  while (!std::filesystem::exists(sockets) || std::filesystem::is_empty(sockets)) {
    ASSERT_EQ(waiting.wait_for(1ms), std::future_status::timeout);
  }
  ASSERT_TRUE(lease->release());
  EXPECT_EQ(waiting.wait_for(1500ms), std::future_status::ready) << "only its timer woke it";
  EXPECT_TRUE(waiting.get());
}

TEST_F(HandOffTest, WhoCouldNotLeaveTheQueueBlocksNobody) {
  Client holder(open());
  auto lease = holder.acquire("job", {.ttl = 24h});
  ASSERT_TRUE(lease);
  {
    RawStore waiter(open());
    ASSERT_TRUE(std::holds_alternative<Queued>(waiter.acquire(new_request(), 30s, true).value()));
  }  // as when the file is locked by somebody else for longer than a program waits
  ASSERT_EQ(waiters(holder), 1u);
  ASSERT_TRUE(lease->release());
  EXPECT_TRUE(holder.acquire("job")) << "the dead waiter is still ahead";
}

TEST_F(HandOffTest, SocketsGoWithTheirProcesses) {
  Client holder(open());
  auto lease = holder.acquire("job", {.ttl = 24h});
  ASSERT_TRUE(lease);
  {
    Worker waiter = Worker::hold(url, "job", 30s, 60s);
    while (waiters(holder) == 0) std::this_thread::sleep_for(1ms);
    waiter.kill();
  }
  ASSERT_TRUE(lease->release());  // finds it dead
  { EXPECT_TRUE(Client(open()).acquire("job")); }
  EXPECT_TRUE(std::filesystem::is_empty(folder.file("locks.db-wake")));
}

}  // namespace
}  // namespace leasehold::testing
