// A ZooKeeper server whose disk is full, on a small filesystem of its own.
#include <gmock/gmock.h>

#include <thread>

#include "one_server.h"
#include "testing/raw_store.h"
#include "testing/small_disk.h"

namespace leasehold::testing {
namespace {

using namespace std::chrono_literals;

// Acquires and releases until that fails; the highest token that was granted.
std::int64_t use_until_it_fails(RawStore& store, std::optional<Error>& failure) {
  std::int64_t highest = 0;
  for (;;) {
    const RequestId request = new_request();
    const auto reply = store.acquire(request);
    if (!reply) {
      failure = reply.error();
      return highest;
    }
    if (const auto* granted = std::get_if<Granted>(&*reply)) {
      EXPECT_GT(granted->token.value(), highest);
      highest = granted->token.value();
    }
    (void)store.try_release(request);
  }
}

// The server ends itself at the first write that does not fit.
void check(const std::filesystem::path& disk) {
  rig::ZookeeperServer server(
      {.min_session_ms = 1000, .max_session_ms = 2500, .data = (disk / "data").string()});
  const std::string url = "zookeeper://" + server.address() + "/full";
  RawStore store(open_zookeeper(url), "job", 5s);
  ASSERT_GT(store.token(new_request()), 0);

  fill_disk(disk / "filler");
  std::optional<Error> failure;
  RawStore busy(open_zookeeper(url), "busy", 5s);
  const std::int64_t highest = use_until_it_fails(busy, failure);
  EXPECT_TRUE(failure->code == ErrorCode::unavailable ||
              failure->code == ErrorCode::outcome_unknown)
      << to_string(*failure);
  while (server.process().runs()) std::this_thread::sleep_for(10ms);
  EXPECT_FALSE(busy.acquire(new_request())) << "nothing is granted without a server";

  std::filesystem::remove(disk / "filler");
  server.start();
  RawStore again(open_zookeeper(url), "busy", 30s);
  const RequestId request = new_request();
  auto reply = again.acquire(request, 2s, true);
  while (reply &&
         !std::holds_alternative<Granted>(*reply)) {  // of a session that has not ended yet
    std::this_thread::sleep_for(20ms);
    reply = again.acquire(request, 2s, true);
  }
  ASSERT_TRUE(reply) << to_string(reply.error());
  EXPECT_GT(std::get<Granted>(*reply).token.value(), highest) << "no token came twice";
}

TEST(ZookeeperFullDisk, GrantsNothingAndCountsOnWhenThereIsRoomAgain) {
  EXPECT_TRUE(passes_on_a_small_disk("size=4m", check));
}

}  // namespace
}  // namespace leasehold::testing
