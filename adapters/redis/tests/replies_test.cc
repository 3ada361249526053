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
  return kRequest + " 00000000000000001 34 4 " + kStore + " " + since + " " + owner;
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
  const auto found = status(held(least, "me"), kMost, least + " - 0 you");  // left: 500
  ASSERT_TRUE(found);
  EXPECT_EQ(found->holder()->held_for, Millis(0));
  EXPECT_EQ(status(held("100", "me"), 90, "80 - 0 you")->holder()->held_for, Millis(0));
  EXPECT_EQ(status(held("100", "me"), 130, "80 - 0 you")->holder()->held_for, Millis(30));
  EXPECT_EQ(status(held("-30000", "me"), 130, "80 - 0 you")->holder()->held_for, Millis(29500));
  EXPECT_EQ(status(held("-400", "me"), 130, "80 - 0 you")->holder()->held_for, Millis(0));
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
  const auto busy = read_acquire(list({number(3), text(""), text("\033[2J")}), kCall, {});
  ASSERT_TRUE(busy);
  EXPECT_EQ(std::get<Busy>(*busy).ahead, hidden);
  const auto nobody = read_acquire(list({number(3), text(""), text("")}), kCall, {});
  EXPECT_EQ(std::get<Busy>(*nobody).ahead, "");
}

TEST(RedisReplies, LastTokenIsTheHoldersOrNone) {
  EXPECT_EQ(status(held("100", "me"), 130, "")->last_token, TokenNumber::of(34).value());
  // Of earlier builds, and of a later one.
  for (const std::string& grant : {std::string(" 34 100 1 me"), " 34 " + kStore + " 100 1 me",
                                   " 01 34 5 " + kStore + " 100 me"}) {
    const auto theirs = status(kRequest + grant, 130, "");
    EXPECT_TRUE(theirs->holder()->foreign);
    EXPECT_FALSE(theirs->last_token);
  }
}

TEST(RedisReplies, AGrantThatNamesNoStoreIsOfTheOneThatWasBelieved) {
  const auto store = StoreId::from_hex(kStore);
  const auto granted = std::get<Granted>(read_acquire(number(35), kCall, store).value());
  EXPECT_EQ(granted.token, TokenNumber::of(35).value());
  EXPECT_EQ(granted.store, store);
  EXPECT_TRUE(granted.fresh);
  EXPECT_EQ(read_acquire(number(35), kCall, {}).error().code, ErrorCode::outcome_unknown);
  EXPECT_EQ(read_acquire(number(0), kCall, store).error().code, ErrorCode::outcome_unknown);
}

// As `inspect` answers of those who hold a lock beside each other: request, end, entry of each.
Result<LockStatus> beside(const std::vector<std::string>& words, const std::string& permits = "") {
  std::vector<Value> holders;
  for (const std::string& word : words) holders.push_back(text(word));
  return read_status(
      list({text(kRequest + "*permits 4"), text(kRequest), number(500), number(1000), text(kStore),
            number(6000), list({}), list(std::move(holders)), text(permits)}),
      LockName::parse("job").value(), LockKeys("lock:job"));
}

TEST(RedisReplies, ThoseBesideEachOtherAreShownByTheirTokens) {
  const std::string other(32, 'b');
  const std::string grant = " " + kStore + " 900 1 4 ";
  const auto seen = beside(
      {kRequest, "1600", "35" + grant + "1 me\nhere", "+" + other, "1300", "34" + grant + "0 you"},
      "4");
  ASSERT_TRUE(seen);
  ASSERT_EQ(seen->holders.size(), 2u);
  const LockStatus::Holder& first = seen->holders[0];
  EXPECT_EQ(first.request.hex(), other);
  EXPECT_TRUE(first.kept);
  EXPECT_EQ(first.owner, "you");
  EXPECT_EQ(first.note, "");
  EXPECT_EQ(first.slot, Slot{0});
  EXPECT_EQ(first.remaining, Millis(300));
  EXPECT_EQ(seen->holders[1].mode, Mode::permit_of(4));
  EXPECT_EQ(seen->holders[1].note, "here");
  EXPECT_EQ(seen->holders[1].held_for, Millis(100));
  EXPECT_EQ(seen->last_token, TokenNumber::of(35).value());
  EXPECT_EQ(seen->set_permits, 4);
}

TEST(RedisReplies, WhatCannotBeReadBesideOthersIsAStranger) {
  const auto seen = beside({kRequest, "inf", "theirs", "theirs", "1600", "theirs"});
  ASSERT_TRUE(seen);
  ASSERT_EQ(seen->holders.size(), 1u) << "without a request nobody can end it";
  EXPECT_TRUE(seen->holder()->foreign);
  EXPECT_EQ(seen->holder()->request.hex(), kRequest);
  EXPECT_EQ(seen->holder()->remaining, Millis(0));
  EXPECT_FALSE(seen->last_token);
  const auto lost = beside({});
  ASSERT_TRUE(lost);
  EXPECT_TRUE(lost->holder()->foreign) << "the key is there, but nobody knows who has it";
  EXPECT_FALSE(lost->set_permits);
}

TEST(RedisReplies, AConflictSaysHowTheLockIsUsed) {
  const auto refused = read_acquire(list({number(4), number(4), number(1)}), kCall, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::invalid);
  EXPECT_THAT(refused.error().message, ::testing::HasSubstr("has 4 permits, which its operator"));
  const auto in_use =
      read_set_permits(list({number(4), number(-1)}), LockName::parse("job").value());
  ASSERT_FALSE(in_use);
  EXPECT_THAT(in_use.error().message, ::testing::HasSubstr("(shared)"));
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
