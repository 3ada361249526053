// A Redis server whose disk is full, on a small filesystem of its own.
#include <gmock/gmock.h>

#include <thread>

#include "server_under_test.h"
#include "testing/small_disk.h"

namespace leasehold::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::AnyOf;
using ::testing::HasSubstr;

// Takes and gives back until that fails, as it must when the last page of the log is full.
struct Use {
  explicit Use(RawStore& store) {
    for (;;) {
      const RequestId request = new_request();
      const auto reply = store.acquire(request, 500ms);  // the last cannot be given back
      if (!reply) {
        failure = reply.error();
        return;
      }
      if (const auto* granted = std::get_if<Granted>(&*reply)) highest = granted->token.value();
      (void)store.try_release(request);
    }
  }
  Error failure{ErrorCode::internal, ""};
  std::int64_t highest = 0;
};

// When the server has noticed that there is room again, which it looks for every second.
std::int64_t next_token(RawStore& store) {
  const RequestId request = new_request();
  for (;;) {
    const auto reply = store.acquire(request);
    if (const auto* granted = reply ? std::get_if<Granted>(&*reply) : nullptr) {
      return granted->token.value();
    }
    std::this_thread::sleep_for(20ms);
  }
}

// It goes on, and refuses every write.
void check_with_fsync_every_second(const std::filesystem::path& disk) {
  rig::RedisServer server({.more = {"--dir", disk.string(), "--appendfsync", "everysec"}});
  RawStore store(open_url(server.url()));
  fill_disk(disk / "filler");
  const Use use(store);
  EXPECT_EQ(use.failure.code, ErrorCode::unavailable) << to_string(use.failure);
  EXPECT_THAT(use.failure.address, HasSubstr(server.address()));
  EXPECT_THAT(use.failure.store_words, HasSubstr("MISCONF Errors writing to the AOF file"));
  EXPECT_THAT(use.failure.store_words, HasSubstr("No space left on device"));
  const auto opened = redis::adapters().front().open_store(Url::parse(server.url()).value(), {});
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::unavailable);
  EXPECT_THAT(opened.error().store_words, HasSubstr("No space left on device"));

  std::filesystem::remove(disk / "filler");
  EXPECT_GT(next_token(store), use.highest);
}

// It ends itself rather than to forget what it has granted.
void check_with_fsync_always(const std::filesystem::path& disk) {
  rig::RedisServer server({.more = {"--dir", disk.string()}});
  RawStore store(open_url(server.url()));
  fill_disk(disk / "filler");
  const Use use(store);
  EXPECT_THAT(use.failure.code, AnyOf(ErrorCode::unavailable, ErrorCode::outcome_unknown))
      << to_string(use.failure);
  EXPECT_THAT(use.failure.address, HasSubstr(server.address()));
  while (server.process().runs()) std::this_thread::sleep_for(1ms);
  const auto nobody = store.acquire(new_request());
  ASSERT_FALSE(nobody);
  EXPECT_EQ(nobody.error().code, ErrorCode::unavailable) << to_string(nobody.error());
  EXPECT_THAT(nobody.error().address, HasSubstr(server.address()));

  std::filesystem::remove(disk / "filler");
  server.process().start();
  EXPECT_GT(next_token(store), use.highest) << "no token came twice";
}

TEST(RedisFullDisk, IsUnavailableWithItsWordsUntilThereIsRoom) {
  EXPECT_TRUE(passes_on_a_small_disk("size=1m", check_with_fsync_every_second));
}

TEST(RedisFullDisk, EndsAServerThatSyncsAlwaysAndNoTokenComesTwice) {
  EXPECT_TRUE(passes_on_a_small_disk("size=1m", check_with_fsync_always));
}

}  // namespace
}  // namespace leasehold::testing
