#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calls.h"
#include "server_numbers.h"

namespace leasehold::redis {
namespace {

using resp::Type;
using resp::Value;

const std::string kRequest(32, 'a');
const std::string kStore(32, '7');

const AcquireCall kCall{LockName::parse("job").value(), RequestId::from_hex(kRequest).value(),
                        OwnerLabel::parse("me").value(), Ttl::of(Millis(1000)).value()};

// As it is at a lock's key.
std::string held(const std::string& since, const std::string& owner) {
  return kRequest + " 34 " + kStore + " " + since + " 1 " + owner;
}

Value text(std::string bytes) {
  Value value;
  value.type = Type::bulk;
  value.text = std::move(bytes);
  return value;
}

Value number(std::int64_t integer) {
  Value value;
  value.type = Type::integer;
  value.integer = integer;
  return value;
}

Value list(std::vector<Value> items) {
  Value value;
  value.type = Type::array;
  value.items = std::move(items);
  return value;
}

// As the script `inspect` answers.
Result<LockStatus> status(const std::string& value, std::int64_t now, const std::string& waiter) {
  return read_status(list({text(value), text(kRequest), number(500), number(now), text(kStore),
                           number(6000), list({text(kRequest), text(waiter)}), list({}), text("")}),
                     LockName::parse("job").value(), LockKeys("lock:job"));
}

TEST(RedisReplies, TimesThatAnotherProgramWroteDoNotOverflow) {
  constexpr std::int64_t kMost = INT64_MAX;
  const std::string least = std::to_string(INT64_MIN);
  const auto found = status(held(least, "me"), kMost, least + " - 0 you");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->holder()->held_for, Millis(0));
  EXPECT_EQ(status(held("100", "me"), 90, "80 - 0 you")->holder()->held_for, Millis(0));
  EXPECT_EQ(status(held("100", "me"), 130, "80 - 0 you")->holder()->held_for, Millis(30));
  EXPECT_EQ(status(held("100", "me"), 130, "80 - 0 you")->waiters.size(), 1u);
  EXPECT_EQ(status(held("100", "me"), 6130, "80 - 0 you")->waiters.size(), 0u);
}

TEST(RedisReplies, LabelsThatAnotherProgramWroteCanBeShown) {
  const std::string hidden = "(an unreadable label)";
  const auto found = status(held("100", "\033[2J"), 130, "80 - 0 \033[2J");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->holder()->owner, hidden);
  ASSERT_EQ(found->waiters.size(), 1u);
  EXPECT_EQ(found->waiters[0].owner, hidden);
  const auto busy = read_acquire(list({number(3), text(""), text("\033[2J")}), kCall);
  ASSERT_TRUE(busy);
  EXPECT_EQ(std::get<Busy>(*busy).ahead, hidden);
  const auto nobody = read_acquire(list({number(3), text(""), text("")}), kCall);
  EXPECT_EQ(std::get<Busy>(*nobody).ahead, "");
}

TEST(RedisReplies, LastTokenIsTheHoldersOrNone) {
  EXPECT_EQ(status(held("100", "me"), 130, "")->last_token, TokenNumber::of(34).value());
  const auto theirs = status(kRequest + " 34 100 1 me", 130, "");  // of an earlier build
  EXPECT_TRUE(theirs->holder()->foreign);
  EXPECT_FALSE(theirs->last_token);
}

TEST(ServerNumbersTest, TimesThatNoClockShowsAreNone) {
  const auto time = time_in(list({text("100"), text("5")}));
  ASSERT_TRUE(time);
  EXPECT_EQ(time->time_since_epoch(), std::chrono::microseconds(100'000'005));
  EXPECT_FALSE(time_in(list({text("9223372036854775807"), text("0")})));
  EXPECT_FALSE(time_in(list({text("100"), text("1000000")})));
  EXPECT_FALSE(time_in(list({text("-1"), text("0")})));
  EXPECT_FALSE(time_in(list({text("100")})));
  EXPECT_FALSE(time_in(text("100")));
}

TEST(ServerNumbersTest, HugeAndNegativeNumbersOfInfoAreBounded) {
  EXPECT_EQ(uptime_in("\nuptime_in_seconds:7\r\n"), std::chrono::seconds(7));
  EXPECT_GT(uptime_in("\nuptime_in_seconds:9223372036854775807\r\n"), std::chrono::hours(24));
  EXPECT_EQ(uptime_in("\nuptime_in_seconds:-7\r\n"), std::chrono::seconds(0));
  EXPECT_EQ(memory_in_percent("\nmaxmemory:200\r\nused_memory:182\r\n"), 91);
  EXPECT_EQ(memory_in_percent("\nmaxmemory:0\r\nused_memory:182\r\n"), std::nullopt);
  EXPECT_EQ(memory_in_percent("\nmaxmemory:9223372036854775807\r\n"
                              "used_memory:9223372036854775807\r\n"),
            100);
}

}  // namespace
}  // namespace leasehold::redis
